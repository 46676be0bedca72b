// Chapter 5. Embedding: a table with one learned vector per token.
//
// Paper, section 3.4: "Similarly to other sequence transduction models, we use learned embeddings to convert the input
// tokens and output tokens to vectors of dimension d_model."
//   y[b, t] = weight[ids[b, t]]
// Shapes: ids i32 [B, T], weight [vocabulary, d_model], y [B, T, d_model]. The table starts from N(0, 1/d_model).
#pragma once

#include "autograd/ops/embedding.h"
#include "nn/init.h"
#include "nn/module.h"

namespace orrery::nn {

struct Embedding : Module {
  Variable weight;  // [vocabulary, d_model]

  Embedding(i64 vocabulary, i64 d_model, Rng& rng) : Embedding(initial_embedding(vocabulary, d_model, rng)) {}
  /// A table with the given initial values.
  explicit Embedding(Tensor table) : weight(parameter(std::move(table))) {}
  /// The rows that `ids` select. An id outside [0, vocabulary) is an error that names the id and its position.
  Variable operator()(const Tensor& ids) const { return embedding(weight, ids); }
  void visit(Visitor& v) override { v("weight", weight); }
};

}  // namespace orrery::nn
