// Chapter 6. QueryKeyNorm: queries and keys of length 1, and one learned factor for their products.
//
// Henry et al. 2020 ("Query-Key Normalization for Transformers", arXiv 2010.04245), abstract: "we apply l2
// normalization along the head dimension of each query and key matrix prior to multiplying them and then scale up by a
// learnable parameter instead of dividing by the square root of the embedding dimension."
//   score(q, k) = g <q / |q|, k / |k|>,   g starts at log2(L^2 - L), L the length of long sequences
// Dot products have no bound, so a softmax may give one key almost all the weight, and then hardly learn any more. A
// cosine is at most 1; g, which all scores share, says how sharp attention can be. Here q / |q| is rms_norm(q) /
// sqrt(d_k), up to its eps; attention divides the scores by the other sqrt(d_k).
// Shapes: Q, K and the results [B, n, h, d_k].
#pragma once

#include <algorithm>
#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/rms_norm.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"

namespace orrery::nn {

struct QueryKeyNorm : QueryKeyMap {
  Variable g;               // [1]
  Part<QueryKeyMap> first;  // applied before the norm, such as Rotary; empty: nothing

  /// For sequences of up to `length` positions.
  explicit QueryKeyNorm(i64 length, Part<QueryKeyMap> first = {}) : first(std::move(first)) {
    const double L = static_cast<double>(std::max<i64>(length, 2));
    g = parameter(full({1}, std::log2(L * L - L)));
  }
  Variable queries(const Variable& Q, i64 first_position) const override {
    const double root = std::sqrt(static_cast<double>(Q.size(-1)));
    return rms_norm(first ? first->queries(Q, first_position) : Q) * (g * (1 / root));
  }
  Variable keys(const Variable& K, i64 first_position) const override {
    return rms_norm(first ? first->keys(K, first_position) : K);
  }
  QueryKeyNorm clone() const {
    QueryKeyNorm copy(2, first.clone());
    copy.g = parameter(g.value().clone());
    return copy;
  }
  void visit(Visitor& v) override {
    v("g", g);
    v("first", first);
  }
};

}  // namespace orrery::nn
