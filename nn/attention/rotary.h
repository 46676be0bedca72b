// Chapter 6. Rotary: queries and keys turned by an angle that grows with their position.
//
// Su et al. 2021 ("RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864), abstract: it
// "encodes the absolute position with a rotation matrix and meanwhile incorporates the explicit relative position
// dependency in self-attention formulation."
//   pair i of a query or key at position pos is turned by the angle pos / 10000^(2i / d_k)
// Two vectors that are turned by the same angle keep their dot product. So of the positions of a query and a key, only
// the difference changes their score. Values are not turned.
// Shapes: Q, K and the results [B, n, h, d_k].
#pragma once

#include "autograd/ops/rotary.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn {

struct Rotary : QueryKeyMap {
  Tensor sine, cosine;  // f64 [max_len, d_k / 2]; not buffers, since max_len and d_k determine them

  /// For positions 0 to max_len - 1. Error: an odd d_k.
  Rotary(i64 max_len, i64 d_k) {
    check(d_k % 2 == 0, "rotary", "needs an even d_k, got ", d_k);
    const Tensor pairs = sinusoidal_table(max_len, d_k).reshape({max_len, d_k / 2, 2});  // sine, then cosine
    sine = slice(pairs, 2, 0, 1).reshape({max_len, d_k / 2});
    cosine = slice(pairs, 2, 1, 2).reshape({max_len, d_k / 2});
  }
  /// Keys are turned in the same way. Error: a position beyond max_len.
  Variable queries(const Variable& Q, i64 first_position) const override {
    const i64 end = first_position + dims<4>(Q.value(), "rotary")[1];
    check(end <= sine.size(0), "rotary", "a sequence has ", end, " positions, but max_len is ", sine.size(0));
    const auto rows = [&](const Tensor& table) { return table.rows(first_position, end).to(Q.dtype()); };
    return rotary(Q, rows(sine), rows(cosine));
  }
  Rotary clone() const {
    Rotary copy;  // which may share the constants
    copy.sine = sine;
    copy.cosine = cosine;
    return copy;
  }
  void visit(Visitor&) override {}

 private:
  Rotary() = default;
};

}  // namespace orrery::nn
