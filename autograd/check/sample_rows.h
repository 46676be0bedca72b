// Chapter 6. What the files with samples of operations share.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
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

using In = const std::vector<Variable>&;

/// What a row proves: f(inputs), or f(inputs, draw), where `draw` identifies a dropout mask (core/random.h).
struct Function {
  std::function<Variable(In, const Draw&)> call;
  template <class F>
  Function(F f)
      : call([f](In x, const Draw& draw) -> Variable {
          if constexpr (std::is_invocable_v<const F&, In, const Draw&>)
            return f(x, draw);
          else
            return f(x);
        }) {}
};

/// Why an input of an operation whose output is empty has the gradient 0.
inline constexpr const char* no_output = "nothing was computed from it";

struct SampleTable {
  std::vector<Sample> rows;
  /// A row of f. `zeros`: the inputs whose gradient is 0, each with the reason.
  void add(const std::string& name, const std::string& variant, const std::vector<Input>& inputs,
           const std::vector<DeclaredZero>& zeros, const Function& f);
  void add(const std::string& name, const std::string& variant, const std::vector<Input>& inputs, const Function& f) {
    add(name, variant, inputs, std::vector<DeclaredZero>(), f);
  }
  /// A row with tensors too long to check every coordinate: it is checked in a few, and along random directions through
  /// all.
  void add_long(const std::string& name, const std::string& variant, const std::vector<Input>& inputs,
                const Function& f);
};

/// Token ids 0, 7, 14, ..., modulo `rows`.
Tensor spread_ids(const Shape& shape, i64 rows);

/// Masks for two sequences of three positions: a causal one, where the second sequence has only two positions; and a
/// table by which the second query sees nothing.
inline Mask causal_and_padded() { return Mask::causal() & Mask::padding({3, 2}); }
inline Mask table_with_empty_row() { return Mask::allow(Tensor::of<i32>({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1})); }

/// The rows of elementwise operations, reductions, and operations that only move numbers
/// (autograd/check/simple_samples.cpp).
void add_simple(SampleTable& table);

/// The rows of the fused operations (autograd/check/fused_samples.cpp), and those of attention among them
/// (autograd/check/fused_attention_samples.cpp).
void add_fused(SampleTable& table);
void add_fused_attention(SampleTable& table);

/// The rows of recurrence, convolution and the gated linear unit (autograd/check/sequence_samples.cpp).
void add_sequences(SampleTable& table);

}  // namespace orrery::sample_rows
