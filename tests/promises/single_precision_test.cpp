// Chapter 8. Promise 8: a whole model's f32 gradients are right, each leaf's by its own scale.
#include <doctest/doctest.h>

#include "autograd/check/mutation.h"
#include "autograd/check/rounding.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"

using namespace orrery;

namespace {

nn::TransformerConfig config(bool norm_first) {
  return {.src_vocab_size = 50,
          .tgt_vocab_size = 40,
          .layer = {.d_model = 64, .num_heads = 4, .d_ff = 128, .dropout = 0.1, .norm_first = norm_first},
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .final_norm = norm_first,
          .max_len = 20};
}

// The loss of a training step as a function of the model's parameters.
Sample training_loss(bool norm_first) {
  const auto make = [=](Dtype dtype, u64 seed) {
    Rng rng(seed);
    const auto model = std::make_shared<nn::Transformer>(config(norm_first), rng);
    nn::to(*model, dtype);
    Tensor source = randint(1, 50, {6, 17}, rng), target = randint(1, 40, {6, 14}, rng);
    for (i64 i = 17 - 5; i < 17; ++i) source.write<i32>()[i] = 0;  // padding after the first sentence
    for (i64 i = 14 - 4; i < 14; ++i) target.write<i32>()[i] = 0;
    const auto loss = [=] {
      nn::Pass pass = nn::Pass::training(seed, 1);
      return cross_entropy((*model)(source, slice(target, 1, 0, -1), pass), slice(target, 1, 1),
                           {.ignore_index = 0, .label_smoothing = 0.1});
    };
    return Checkable{.output = loss, .leaves = model->parameters()};
  };
  return {"nn/Transformer", norm_first ? "pre-norm" : "post-norm", make};
}

// The leaf whose largest gradient is the smallest.
size_t quietest_leaf(const Sample& sample) {
  const std::vector<Tensor> gradients = gradients_of(sample.build(f64), full({}, 1, f64));
  const auto quieter = [](const Tensor& a, const Tensor& b) { return largest_magnitude({a}) < largest_magnitude({b}); };
  return static_cast<size_t>(std::min_element(gradients.begin(), gradients.end(), quieter) - gradients.begin());
}

// The same, where f32 has one leaf's gradient larger by a thousandth.
Sample with_mistake(const Sample& right, size_t leaf) {
  Sample wrong = right;
  wrong.make = [=](Dtype dtype, u64 seed) {
    Checkable f = right.make(dtype, seed);
    if (dtype == f64) return f;
    f.engine = [x = f.leaves[leaf].value](const Variable& y, const Tensor& dy) {
      backward(y, dy);
      Tensor dx = x.gradient();
      scale_in_place(dx, 1.001);
    };
    return f;
  };
  return wrong;
}

}  // namespace

TEST_CASE("promise 8: f32 gradients of the whole Transformer are those of f64, each leaf by its own scale") {
  double worst = 0;
  i64 rounded = 0;
  for (const bool norm_first : {false, true}) {
    for (const u64 seed : {1, 2}) {
      CAPTURE(norm_first);
      CAPTURE(seed);
      const SinglePrecision found = compare_precisions(training_loss(norm_first), seed);
      CHECK(found.problem == "");
      worst = std::max(worst, found.gradient_error);
      rounded += found.rounded;
    }
  }
  CHECK(worst > 0);
  MESSAGE("at most ", worst, " of a leaf's largest gradient; beyond 1e-6, and rounding, ", rounded, " leaves");
}

TEST_CASE("promise 8: an error of a thousandth in the leaf with the smallest gradients is found") {
  const Sample right = training_loss(true);
  const size_t leaf = quietest_leaf(right);
  CHECK(compare_precisions(with_mistake(right, leaf), 1)
            .problem.starts_with(right.build(f64).leaves[leaf].name + " is off"));
}
