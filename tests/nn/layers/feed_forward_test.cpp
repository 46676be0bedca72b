// Chapter 5. FeedForward against loops.
#include "nn/layers/feed_forward.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;

namespace {

double relu_of(double x) { return x > 0 ? x : 0; }
double gelu_of(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh_of(double x) { return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

}  // namespace

TEST_CASE("FFN(x) = max(0, x W1 + b1) W2 + b2, and the same with GELU, exact or with tanh") {
  Rng rng(8);
  const Tensor x = randn({2, 3, 4}, rng, f64);
  for (const nn::Activation activation : {nn::Activation::relu, nn::Activation::gelu, nn::Activation::gelu_tanh}) {
    const auto f = activation == nn::Activation::relu   ? relu_of
                   : activation == nn::Activation::gelu ? gelu_of
                                                        : gelu_tanh_of;
    nn::FeedForward layer(4, 7, rng, {.activation = activation});
    make_noisy(layer, 3);
    Tensor hidden = naive_linear(x, layer.linear1.weight.value(), layer.linear1.bias.value());
    for (i64 i = 0; i < hidden.count(); ++i) {
      double& h = hidden.write<double>()[i];
      h = f(h);
    }
    nn::Pass pass;
    CHECK(distance(layer(constant(x), pass).value(),
                   naive_linear(hidden, layer.linear2.weight.value(), layer.linear2.bias.value())) < 1e-13);
  }
}

TEST_CASE("a feed-forward network has two matrices and two biases") {
  Rng rng(8);
  CHECK(nn::FeedForward(4, 7, rng).parameter_count() == 4 * 7 + 7 + 7 * 4 + 4);
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
