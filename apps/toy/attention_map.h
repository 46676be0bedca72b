// Chapter 9. A picture of attention: who looks at whom, in the terminal.
//
// Rows are queries, columns keys; the darker a cell, the more of that key's value flows into that query.
// Serves: apps/toy/toy.cpp
#pragma once

#include <ostream>

#include "apps/figure/figures.h"
#include "apps/toy/task.h"
#include "nn/models/transformer.h"

namespace orrery {

/// The cross-attention of the head that looks most sharply while the model writes the answer to `source`: a row for
/// each symbol written, a column for each symbol read.
AttentionFigure sharpest_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source);

/// How sharply a head looks: the mean over its rows of the largest weight; 1 if each row reads one symbol.
double sharpness(const std::vector<std::vector<double>>& weights);

/// Prints the weights as shades of grey, with their labels.
void print_attention(std::ostream& out, const AttentionFigure& figure);

}  // namespace orrery
