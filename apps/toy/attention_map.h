// Chapter 6. A picture of attention: who looks at whom, in the terminal.
//
// Rows are queries, columns keys; the darker a cell, the more of that key's value flows into that query.
// Serves: apps/toy/toy.cpp
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// One head's weights of one sequence, [n, m], cut out of weights [B, h, n, m].
Tensor head_weights(const Tensor& weights, i64 batch, i64 head);

/// How sharply a head looks: the mean over the first `queries` rows of the largest weight; 1 when each row has one key.
double sharpness(const Tensor& map, i64 queries);

/// Prints the first `rows.size()` queries and `columns.size()` keys of a map [n, m] with their labels.
void print_attention(std::ostream& out, const Tensor& map, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns);

}  // namespace orrery
