// Chapter 7. The bug zoo: classic mistakes as exercises, each with a hint and with the check that finds it.
//
// Most are wrong derivatives: `samples` replace the function's rows in the table of proofs, and gradcheck fails. (Other
// functions that contain the same computation in a loop of their own, such as attention with its softmax, keep their
// correct rows.) Others are mistakes that no gradient check can find: a mask applied after the softmax, a target that
// is not shifted, a derivative that is wrong at one point. They come with the check that finds them; their rows pass.
// apps/check/bugs.h gives each a number, so that its name does not say what to look for:
//   orrery gradcheck --bugs                the numbers
//   orrery gradcheck --bug 7               what a proof, or a leak check, finds
//   orrery gradcheck --reveal 7            the mistake
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"
#include "nn/check/leakcheck.h"

namespace orrery::nn {

/// One mistake.
struct Bug {
  std::string name;     ///< "softmax-without-inner-product"
  std::string mistake;  ///< what is wrong, in one sentence
  std::string hint;     ///< what to think of before reading the mistake
  /// Rows of the table of proofs with the mistake built in. Names, variants and inputs are those of the correct rows.
  std::vector<Sample> samples{};
  /// For a mistake that no derivative shows: runs the check that finds it and returns its message, "" if it passes.
  std::function<std::string()> check{};
  /// The same check of the correct version, which must return "".
  std::function<std::string()> check_right{};
  /// For a mistake that no derivative shows, in a function of sequences: which inputs move which outputs.
  std::function<LeakReport()> leaks{};
  /// Numbers that tell it from a mistake with the same leaks, as a line of text.
  std::function<std::string()> numbers{};
};

const std::vector<Bug>& bug_zoo();

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
/// Those in the steps of a training or of a decoder (apps/check/zoo/bug_zoo_steps.cpp).
std::vector<Bug> bugs_of_steps();

}  // namespace orrery::nn
