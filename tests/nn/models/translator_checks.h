// Chapter 7. What holds for every model that translates, and two short sentences to try it on.
#pragma once

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

namespace orrery::nn {

inline const Tensor short_source = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 8, 0, 0});
inline const Tensor short_target = Tensor::of<i32>({2, 3}, {1, 5, 4, 1, 8, 2});

template <class Model, class Config> Model built(const Config& config) {
  Rng rng(1);
  return Model(config, rng);
}

/// The logits of the whole target, outside training.
template <class Model> Tensor logits_of(const Model& model, const Tensor& source, const Tensor& target) {
  Pass pass;
  return model(source, target, pass).value();
}

/// The loss is the cross entropy of the logits, with padding and smoothing.
template <class Model> void check_loss(const Model& model) {
  const Tensor labels = Tensor::of<i32>({2, 3}, {5, 4, 2, 8, 2, 0});
  const CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1};
  Pass pass;
  const double expected = cross_entropy(model(short_source, short_target, pass), labels, options).item();
  CHECK(model.loss(short_source, short_target, labels, pass, options).item() ==
        doctest::Approx(expected).epsilon(1e-6));
}

/// A row does not depend on the padding, nor on the rows beside it.
template <class Model> void check_rows(Model model) {
  make_noisy(model, 2);
  const Tensor alone = logits_of(model, Tensor::of<i32>({1, 2}, {7, 8}), short_target.rows(1, 2));
  CHECK(relative(alone, logits_of(model, short_source, short_target).rows(1, 2)) < 1e-13);
}

/// A logit sees the target up to its own token, and every word of the source.
template <class Model> void check_sight(Model model) {
  make_noisy(model, 2);
  const Tensor before = logits_of(model, short_source, short_target);
  Tensor later = short_target.clone();
  later(0, 2) = 7;
  const Tensor after = logits_of(model, short_source, later);
  CHECK(same_bits(slice(before, 1, 0, 2), slice(after, 1, 0, 2)));
  CHECK_FALSE(same_bits(slice(before, 1, 2), slice(after, 1, 2)));
  for (i64 i = 0; i < 4; ++i) {
    Tensor other = short_source.clone();
    other(0, i) = 1;
    const Tensor moved = logits_of(model, other, short_target);
    CHECK(distance(moved.rows(0, 1), before.rows(0, 1)) > 1e-6);
    CHECK(same_bits(moved.rows(1, 2), before.rows(1, 2)));
  }
}

/// With `share_embeddings`, which this sets, the tables are one parameter, and the model has `fewer` numbers less than
/// without. A clone is equal and independent.
template <class Model, class Config> void check_sharing(Config config, i64 fewer) {
  const i64 apart = built<Model>(config).parameter_count();
  config.share_embeddings = true;
  Model model = built<Model>(config);
  CHECK(model.parameter_count() == apart - fewer);
  Model copy = model.clone();
  CHECK(copy.tgt_embed.weight.value().shares_memory_with(copy.src_embed.weight.value()));
  const Tensor before = logits_of(copy, short_source, short_target);
  CHECK(same_bits(before, logits_of(model, short_source, short_target)));
  for (NamedParameter& p : model.parameters()) fill(p.value.mutable_value(), 0.5);
  CHECK(same_bits(before, logits_of(copy, short_source, short_target)));
}

}  // namespace orrery::nn
