// Chapter 7. Convolution as a layer against loops; names, counts, initial values.
#include "nn/layers/convolution.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;

TEST_CASE("the outputs are those of the formula, with each kind of zeros around the sequence") {
  Rng rng(1);
  const Tensor x = randn({2, 5, 3}, rng, f64);
  for (const bool causal : {false, true}) {
    nn::Convolution layer(3, 4, 3, causal ? ConvolutionPadding::causal : ConvolutionPadding::same, rng);
    make_noisy(layer, 2);
    const Tensor y = layer(constant(x)).value();
    CHECK(y.shape() == Shape{2, 5, 4});
    for (i64 b = 0; b < 2; ++b) {
      for (i64 t = 0; t < 5; ++t) {
        for (i64 o = 0; o < 4; ++o) {
          double expected = layer.bias.value().at(o);
          for (i64 j = 0; j < 3; ++j) {
            const i64 s = t + j - (causal ? 2 : 1);
            for (i64 c = 0; s >= 0 && s < 5 && c < 3; ++c) expected += layer.weight.value()(o, c, j) * x(b, s, c);
          }
          CHECK(y(b, t, o) == doctest::Approx(expected).epsilon(1e-12));
        }
      }
    }
    CHECK(distance(layer.without_padding(constant(x)).value(), causal ? slice(y, 1, 2) : slice(y, 1, 1, 4)) < 1e-14);
  }
}

TEST_CASE("names, counts and initial values are torch.nn.Conv1d's") {
  Rng rng(3);
  nn::Convolution layer(6, 40, 5, ConvolutionPadding::same, rng);
  const Parameters parameters = layer.parameters();
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "weight");
  CHECK(parameters[1].name == "bias");
  CHECK(layer.weight.shape() == Shape{40, 6, 5});
  CHECK(layer.width() == 5);
  CHECK(static_cast<double>(layer.parameter_count()) == nn::Convolution::parameter_count(6, 40, 5));
  for (const NamedParameter& p : parameters) {
    const double largest = distance(p.value.value(), zeros(p.value.shape()));
    CHECK(largest <= 1 / std::sqrt(30.0));
    CHECK(largest > 0.8 / std::sqrt(30.0));
  }
}

TEST_CASE("a padded row has the outputs of the row alone") {
  Rng rng(4);
  nn::Convolution layer(3, 4, 3, ConvolutionPadding::same, rng);
  make_noisy(layer, 5);
  const Tensor x = randn({2, 5, 3}, rng, f64);
  const Tensor y = layer(constant(x), Mask::padding(Tensor::of<i32>({2}, {5, 2}))).value();
  const Tensor alone = layer(constant(slice(x.rows(1, 2), 1, 0, 2))).value();
  CHECK(distance(slice(y.rows(1, 2), 1, 0, 2), alone) < 1e-14);
}
