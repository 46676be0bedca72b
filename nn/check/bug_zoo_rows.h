// Chapter 7. The bug zoo: how a mistake takes the place of rows of the table of proofs.
//
// Serves: autograd/check/proof.h
#pragma once

#include <string>
#include <vector>

#include "nn/check/bug_zoo.h"

namespace orrery::nn {

/// A function of a row's leaves: inputs first, then parameters.
using WrongFunction = std::function<Variable(const std::vector<Variable>& leaves)>;

/// The rows of an operation, or of a layer, of these variants (none given: every row of that name), with `wrong` in
/// place of the right function. Error: there is no such row.
std::vector<Sample> operation_rows(const std::string& name, const std::vector<std::string>& variants,
                                   const WrongFunction& wrong);
std::vector<Sample> layer_rows(const std::string& name, const std::vector<std::string>& variants,
                               const WrongFunction& wrong);

inline std::vector<Sample> operator+(std::vector<Sample> a, const std::vector<Sample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The part of the zoo that no derivative shows (nn/check/bug_zoo_checks.cpp).
std::vector<Bug> bugs_found_without_derivatives();

}  // namespace orrery::nn
