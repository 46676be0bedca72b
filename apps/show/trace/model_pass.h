// Chapter 9. One forward and one backward pass of a tiny model of the paper, recorded step by step.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/show/trace/explanations.h"

namespace orrery {

/// A weight of the traced model, and its gradient after the pass.
struct TracedParameter {
  std::string name;
  Tensor value, gradient;
};

/// The pass and what it was computed from.
struct ModelPass {
  i64 B, h, S, d_k, T, K, d_model, d_ff;            ///< the sizes, by the names of the paper
  std::vector<std::string> source, target, labels;  ///< the tokens
  std::vector<std::string> words;                   ///< the vocabulary
  std::vector<TracedBox> boxes;                     ///< in the order of the forward pass
  std::vector<TracedStep> steps;                    ///< forward, then backward
  std::vector<TracedParameter> parameters;
  double loss;
};

/// Always the same pass. All numbers are f64. The weights are rounded to two decimals, so that every machine computes
/// with the same ones, and so that a reader can compute with them.
ModelPass traced_pass();

/// What is computed, and the sizes, in a few sentences.
std::string introduction(const ModelPass& pass);

/// A value as it is shown: rounded to four decimals, and never -0.
double shown(double x);

/// What is shown, the forward pass, the backward pass and the gradients of the parameters, in `table_width` columns.
void print_pass(std::ostream& out, const ModelPass& pass);

/// The pass as JSON that can stand inside a <script> element: it has no '<'.
std::string trace_json(const ModelPass& pass);

/// The page: apps/show/trace/page.html with the style, the script and the pass in their places.
std::string trace_page(const ModelPass& pass);

}  // namespace orrery
