// Chapter 7. LayerOptions: what is left open follows `dropout` and the paper, and wrong values are refused.
#include "nn/models/layer_options.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::nn;

TEST_CASE("options that are not given follow from those that are") {
  LayerOptions options{.d_model = 8, .num_heads = 2, .dropout = 0.3, .bias = false};
  CHECK(options.attention().dropout == 0.3);
  CHECK(options.feed_forward().dropout == 0.3);
  CHECK(options.feed_forward().activation == Activation::relu);
  CHECK_FALSE(options.linear().bias);
  CHECK_FALSE(options.norm().bias);
  options.attention_dropout = 0.0;
  options.activation_dropout = 0.2;
  options.activation = Activation::gelu;
  CHECK(options.attention().dropout == 0);
  CHECK(options.feed_forward().dropout == 0.2);
  CHECK(options.feed_forward().activation == Activation::gelu);
}

TEST_CASE("values out of range, and two that do not fit, are refused by name") {
  const auto refusal = [](auto change) {
    LayerOptions options{.d_model = 8, .num_heads = 2};
    change(options);
    return small::error_of([&] { options.validate("model"); });
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK(refusal([](auto& o) { o.d_ff = 0; }) == "model: d_ff must be positive, not 0");
  CHECK(refusal([](auto& o) { o.num_heads = 3; }) ==
        "model: d_model (8) is not a multiple of num_heads (3); give d_k and d_v");
  CHECK(refusal([](auto& o) {
          o.num_heads = 3;
          o.d_k = 4;
          o.d_v = 5;
        }) == "");
  CHECK(refusal([](auto& o) { o.activation_dropout = 1; }).starts_with("model: activation_dropout must be in [0, 1)"));
  CHECK(refusal([](auto& o) { o.layer_norm_eps = 0; }).starts_with("model: layer_norm_eps must be in (0, 1)"));
}
