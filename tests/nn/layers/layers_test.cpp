// Chapter 5. Layers and positions: what they add to their operations (tests/autograd/ops); their values are PyTorch's
// (tests/torch).
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/layers/convolution.h"
#include "nn/layers/dropout.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/padding.h"
#include "nn/positions/positional_encoding.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Pass;
using nn::Positions;

TEST_CASE("an error of a linear map names the parameter") {
  Rng rng(2);
  nn::Linear layer(5, 3, rng);
  layer.parameters();
  CHECK_THROWS_WITH_AS(layer(constant(zeros({2, 4}))), doctest::Contains("from parameter weight"), Error);
  CHECK_THROWS_AS(layer(constant(zeros({2, 5}, f64))), Error);
}

TEST_CASE(
    "a layer norm has the form, the eps and the bias that it was asked for; of a sum it is that of x + dropout(f)") {
  using enum LayerNormForm;
  Rng rng(5);
  const Variable x = constant(randn({2, 3, 6}, rng, f64)), f = constant(randn({2, 3, 6}, rng, f64));
  const Draw draw{.seed = 3, .step = 1};
  for (const LayerNormForm form : {root_of_variance_plus_eps, std_plus_eps, unbiased_std_plus_eps}) {
    for (const bool bias : {true, false}) {
      nn::LayerNorm norm(6, {.eps = 0.1, .bias = bias, .form = form});
      make_noisy(norm, 6);
      CHECK(norm.parameter_count() == (bias ? 12 : 6));
      CHECK(same_bits(norm(x).value(), layer_norm(x, norm.weight, norm.bias, 0.1, form).value()));
      for (const double p : {0.0, 0.4})
        CHECK(distance(norm.normalized_sum(x, f, p, draw).value(), norm(x + dropout(f, p, draw)).value()) < 1e-13);
    }
  }
}

TEST_CASE("dropout falls on the inner activations, in training only") {
  Rng rng(8);
  for (const nn::Activation activation : {nn::Activation::relu, nn::Activation::gelu, nn::Activation::gelu_tanh}) {
    nn::FeedForward layer(4, 7, rng, {.dropout = 0.5, .activation = activation});
    const Variable x = constant(randn({2, 4}, rng));
    nn::Pass training = nn::Pass::training(1, 1), inference;
    const Variable y = layer(x, training), h = layer.linear1(x);
    CHECK(training.draws == 1);
    CHECK(distance(y.value(), layer(x, inference).value()) > 0);
    const Variable inner = activation == nn::Activation::relu   ? relu(h)
                           : activation == nn::Activation::gelu ? gelu(h)
                                                                : gelu_tanh(h);
    const Variable dropped = dropout(inner, 0.5, nn::Pass::training(1, 1).next_draw());
    CHECK(distance(y.value(), layer.linear2(dropped).value()) < 1e-6);
  }
}

TEST_CASE("outside training, or with p = 0, x comes back as it is and no mask is drawn") {
  const Variable x = constant(full({2, 2}, 1.0));
  Pass inference = Pass::inference(), training = Pass::training(1, 1);
  CHECK(nn::Dropout(0.5)(x, inference).value().shares_memory_with(x.value()));
  CHECK(nn::Dropout(0)(x, training).value().shares_memory_with(x.value()));
  CHECK(training.draws == 0);
  nn::Dropout(0.5)(x, training);
  CHECK(training.draws == 1);
}

TEST_CASE("a probability outside [0, 1) is an error") {
  CHECK_THROWS_WITH(nn::Dropout(1.0), "dropout: the probability must be in [0, 1), not 1");
  CHECK_THROWS_AS(nn::Dropout(-0.1), Error);
}

TEST_CASE("NaN, infinity and huge numbers beyond the lengths become 0, numbers before them stay") {
  Rng rng(1);
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 1}));
  const Tensor clean = randn({2, 3, 4}, rng, f64);
  CHECK(nn::with_harmless_padding(constant(clean), mask).value().shares_memory_with(clean));
  CHECK(nn::with_harmless_padding(constant(clean), Mask()).value().shares_memory_with(clean));
  for (const double harmful : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e147}) {
    Tensor x = clean.clone();
    x(1, 2, 3) = harmful;
    const Tensor result = nn::with_harmless_padding(constant(x), mask).value();
    CHECK(same_bits(result.rows(0, 1), clean.rows(0, 1)));
    CHECK(same_bits(slice(result.rows(1, 2), 1, 0, 1), slice(clean.rows(1, 2), 1, 0, 1)));
    CHECK(sum_of_squares(slice(result.rows(1, 2), 1, 1)) == 0);
  }
}

TEST_CASE("a convolution without padding has the outputs that see no zeros") {
  Rng rng(1);
  const Tensor x = randn({2, 5, 3}, rng, f64);
  for (const bool causal : {false, true}) {
    nn::Convolution layer(3, 4, 3, causal ? ConvolutionPadding::causal : ConvolutionPadding::same, rng);
    make_noisy(layer, 2);
    const Tensor y = layer(constant(x)).value();
    CHECK(distance(layer.without_padding(constant(x)).value(), causal ? slice(y, 1, 2) : slice(y, 1, 1, 4)) < 1e-14);
  }
}

TEST_CASE("a convolution's initial values are torch.nn.Conv1d's") {
  Rng rng(3);
  nn::Convolution layer(6, 40, 5, ConvolutionPadding::same, rng);
  for (const NamedParameter& p : layer.parameters()) {
    const double largest = distance(p.value.value(), zeros(p.value.shape()));
    CHECK(largest <= 1 / std::sqrt(30.0));
    CHECK(largest > 0.8 / std::sqrt(30.0));
  }
}

TEST_CASE("the table holds the paper's sines and cosines") {
  const Tensor table = nn::sinusoidal_table(50, 4);
  const auto at = [&](i64 position, i64 column) { return table.at(position * 4 + column); };
  CHECK(at(0, 0) == 0);
  CHECK(at(0, 1) == 1);
  CHECK(at(0, 3) == 1);
  CHECK(at(1, 0) == doctest::Approx(0.8414709848078965).epsilon(1e-15));    // sin 1
  CHECK(at(1, 1) == doctest::Approx(0.5403023058681398).epsilon(1e-15));    // cos 1
  CHECK(at(1, 2) == doctest::Approx(0.009999833334166664).epsilon(1e-14));  // sin 1/100
  CHECK(at(49, 2) == doctest::Approx(std::sin(0.49)).epsilon(1e-14));
  CHECK(at(49, 3) == doctest::Approx(std::cos(0.49)).epsilon(1e-14));
}

TEST_CASE("an odd d_model ends with a sine") {
  const Tensor table = nn::sinusoidal_table(3, 5);
  CHECK(table.at(5 + 4) == doctest::Approx(std::sin(1 / std::pow(10000.0, 4.0 / 5))).epsilon(1e-14));
  CHECK(nn::sinusoidal_table(2, 1).at(1) == doctest::Approx(std::sin(1.0)).epsilon(1e-15));
}

TEST_CASE("encodings are added to every row of the batch, from position 0 on") {
  Rng rng(1);
  for (const Positions kind : {Positions::sinusoidal, Positions::learned}) {
    nn::PositionalEncoding layer(kind, 6, 5, rng);
    to(layer, f64);
    const Tensor x = randn({2, 4, 5}, rng, f64), y = layer(constant(x)).value();
    const Tensor rows = kind == Positions::learned ? layer.weight.value().rows(0, 4) : nn::sinusoidal_table(4, 5);
    CHECK(distance(y, x + rows) == 0);
    CHECK(layer.parameter_count() == (kind == Positions::learned ? 30 : 0));
  }
}

TEST_CASE("positions beyond max_len are an error") {
  Rng rng(1);
  const nn::PositionalEncoding layer(Positions::sinusoidal, 6, 4, rng);
  CHECK_NOTHROW(layer(constant(zeros({1, 6, 4}))));
  CHECK_THROWS_WITH(layer(constant(zeros({1, 7, 4}))),
                    "positional_encoding: a sequence has 7 positions, but max_len is 6\n"
                    "  input 0: [1, 7, 4]  from a constant");
  CHECK_THROWS_AS(layer(constant(zeros({6, 4}))), Error);
}

TEST_CASE("first_rows: the rows that fused operations add") {
  Rng rng(1);
  const nn::PositionalEncoding fixed(Positions::sinusoidal, 6, 4, rng), learned(Positions::learned, 6, 4, rng);
  CHECK(same_bits(fixed.first_rows(3, f32).value(), nn::sinusoidal_table(3, 4).to(f32)));
  CHECK_FALSE(fixed.first_rows(3, f32).wants_gradient());
  CHECK(learned.first_rows(3, f32).node() == learned.weight.node());  // all of it: the caller takes its rows
  CHECK_THROWS_WITH(learned.first_rows(7, f32), "positional_encoding: a sequence has 7 positions, but max_len is 6");
}
