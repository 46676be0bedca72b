// Chapter 7. The bug zoo: classic mistakes as exercises, each with a hint and with the check that finds it.
//
// Most are wrong derivatives: `samples` take the place of the function's rows in the table of proofs, and gradcheck
// fails. (What computes the same by a loop of its own, as attention its softmax, keeps its right rows.) Others are
// wrong functions with right derivatives, which no gradient check can see: a mask applied after the softmax, a target
// that is not shifted. They bring the check that does see them, and their rows, where there are any, pass.
//   orrery gradcheck --bug list            the mistakes and the hints
//   orrery gradcheck --bug softmax-without-inner-product
// Serves: autograd/check/proof.h
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery::nn {

/// One mistake.
struct Bug {
  std::string name;     ///< "softmax-without-inner-product"
  std::string mistake;  ///< what is wrong, in one sentence
  std::string hint;     ///< what to think of before reading the mistake
  std::vector<Sample>
      samples{};  ///< rows of the table of proofs built with the mistake: names, variants, inputs are the right rows'
  std::function<std::string()> check{};  ///< where no derivative shows it: the message of what does, "" if nothing does
  std::function<std::string()>
      check_right{};  ///< the same check of the right version: "" if it is as right as it should be
};

const std::vector<Bug>& bug_zoo();

}  // namespace orrery::nn
