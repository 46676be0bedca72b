// Chapter 7. The bug zoo: replacing rows of the table of proofs by a mistake.
#pragma once

#include <string>
#include <vector>

#include "apps/check/zoo/bug_zoo.h"
#include "nn/check/sample_rows.h"

namespace orrery::nn {

/// A function of a row's leaves: inputs first, then parameters.
using WrongFunction = std::function<Variable(const std::vector<Variable>& leaves)>;

/// The rows of an operation, or of a layer, with `wrong` in place of the correct function. Without `variants`: every
/// row of that name. Error: there is no such row.
std::vector<Sample> operation_rows(const std::string& name, const std::vector<std::string>& variants,
                                   const WrongFunction& wrong);
std::vector<Sample> layer_rows(const std::string& name, const std::vector<std::string>& variants,
                               const WrongFunction& wrong);

/// The mistakes that no derivative shows (apps/check/zoo/bug_zoo_checks.cpp).
std::vector<Bug> bugs_found_without_derivatives();

}  // namespace orrery::nn
