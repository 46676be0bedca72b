// Chapter 5. Equal to PyTorch: Linear, LayerNorm, RmsNorm, Embedding.
#include "nn/layers/embedding.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/rms_norm.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

TEST_CASE("promise 9: Linear is torch.nn.Linear") {
  for (const bool bias : {true, false}) {
    Rng rng(1);
    nn::Linear layer(5, 4, rng, {.bias = bias});
    check_equal(Case("linear", bias ? "with_bias" : "without_bias"), layer,
                [&](const Inputs& in) { return layer(in["input"]); });
  }
}

TEST_CASE("promise 9: LayerNorm is torch.nn.LayerNorm") {
  nn::LayerNorm with_bias(8), without_bias(8, {.eps = 1e-3, .bias = false});
  check_equal(Case("layer_norm", "with_bias"), with_bias, [&](const Inputs& in) { return with_bias(in["input"]); });
  check_equal(Case("layer_norm", "without_bias"), without_bias,
              [&](const Inputs& in) { return without_bias(in["input"]); });
}

TEST_CASE("promise 9: RmsNorm is torch.nn.RMSNorm") {
  nn::RmsNorm layer(8);
  check_equal(Case("rms_norm", "rms_norm"), layer, [&](const Inputs& in) { return layer(in["input"]); });
}

TEST_CASE("promise 9: Embedding is torch.nn.Embedding, with repeated tokens and unused ones") {
  Rng rng(1);
  nn::Embedding layer(7, 6, rng);
  check_equal(Case("embedding", "embedding"), layer, [&](const Inputs& in) { return layer(in.ids("ids")); });
}
