// Chapter 8. Promise 8: a whole model's f32 gradients lie within 1e-6 of the largest f64 gradient.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"
#include "tests/nn/compare.h"

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

// The gradient of every parameter, as f64.
std::vector<Tensor> gradients(nn::Transformer& model, u64 seed) {
  Rng rng(seed);
  Tensor source = randint(1, 50, {6, 17}, rng), target = randint(1, 40, {6, 14}, rng);
  for (i64 i = 17 - 5; i < 17; ++i) source.write<i32>()[i] = 0;  // padding behind the first sentence
  for (i64 i = 14 - 4; i < 14; ++i) target.write<i32>()[i] = 0;
  nn::Pass pass = nn::Pass::training(seed, 1);
  backward(cross_entropy(model(source, slice(target, 1, 0, -1), pass), slice(target, 1, 1),
                         {.ignore_index = 0, .label_smoothing = 0.1}));
  std::vector<Tensor> result;
  for (NamedParameter& p : model.parameters()) {
    result.push_back(p.value.gradient().to(f64));
    p.value.clear_gradient();
  }
  return result;
}

// The largest difference between f32 and f64 gradients, in parts of the largest f64 gradient.
double worst_difference(bool norm_first, u64 seed) {
  Rng rng(seed);
  nn::Transformer model(config(norm_first), rng);
  const std::vector<Tensor> single = gradients(model, seed);
  nn::to(model, f64);
  const std::vector<Tensor> exact = gradients(model, seed);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, distance(single[i], exact[i]));
    largest = std::max(largest, distance(exact[i], zeros(exact[i].shape(), f64)));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("promise 8: f32 gradients of the whole Transformer are those of f64 within 1e-6 of the largest") {
  double worst = 0;
  for (const bool norm_first : {false, true}) {
    for (const u64 seed : {1, 2, 3, 4}) {
      CAPTURE(norm_first);
      CAPTURE(seed);
      const double difference = worst_difference(norm_first, seed);
      CHECK(difference <= 1e-6);
      worst = std::max(worst, difference);
    }
  }
  CHECK(worst > 0);
  MESSAGE("at most ", worst, " of the largest gradient");
}
