// Chapter 6. What the files with samples of operations share.
#pragma once

#include <string>
#include <vector>

#include "autograd/check/samples.h"
#include "core/mask.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery::sample_rows {

/// Where an input's values come from.
enum class Range {
  normal,           ///< N(0, 1)
  positive,         ///< uniform on [0.5, 2.5)
  away_from_zero,   ///< N(0, 1), moved away from 0 by 0.05
  distinct,         ///< no two values nearer than 0.1
  distinct_nearby,  ///< the same for any 101 successive values
  tails,            ///< N(0, 1), but every second number is 4 to 10 away from 0
  positive_tails,   ///< the magnitudes of those, plus 0.5
};

/// Loops are cut into chunks of 8,192 elements or rows. At these sizes they have several: `long_rows` rows of a few
/// columns, `long_flat` elements along one axis.
inline constexpr int long_rows = 8200, long_flat = 16411;

struct Input {
  Shape shape;
  Range range = Range::normal;
};

using Variables = std::vector<Variable>;
using Function = std::function<Variable(const Variables&)>;

using DrawnFunction = std::function<Variable(const Variables&, const Draw&)>;

/// Why an input of an operation whose output is empty has the gradient 0.
inline constexpr const char* no_output = "nothing was computed from it";

/// The row of f(inputs...). `zeros`: the inputs whose gradient is 0, each with the reason.
Sample sample(std::string name, std::string variant, std::vector<Input> inputs, Function f,
              std::vector<DeclaredZero> zeros = {});

/// The row of f(inputs, draw), where `draw` identifies a dropout mask (core/random.h).
Sample drawn_sample(std::string name, std::string variant, std::vector<Input> inputs, DrawnFunction f,
                    std::vector<DeclaredZero> zeros = {});

/// A row with tensors too long to check every coordinate: it is checked in a few, and along random directions through
/// all.
Sample long_sample(std::string name, std::string variant, std::vector<Input> inputs, Function f);

/// Token ids 0, 7, 14, ..., modulo `rows`.
Tensor spread_ids(const Shape& shape, i64 rows);

/// Masks for two sequences of three positions: a causal one, where the second sequence has only two positions; and a
/// table by which the second query sees nothing.
inline Mask causal_and_padded() { return Mask::causal() & Mask::padding({3, 2}); }
inline Mask table_with_empty_row() { return Mask::allow(Tensor::of<i32>({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1})); }

/// The rows of elementwise operations, reductions, and operations that only move numbers
/// (autograd/check/simple_samples.cpp).
void add_simple(std::vector<Sample>& table);

/// The rows of the fused operations (autograd/check/fused_samples.cpp), and those of attention among them
/// (autograd/check/fused_attention_samples.cpp).
void add_fused(std::vector<Sample>& table);
void add_fused_attention(std::vector<Sample>& table);

/// The rows of recurrence, convolution and the gated linear unit (autograd/check/sequence_samples.cpp).
void add_sequences(std::vector<Sample>& table);

}  // namespace orrery::sample_rows
