// Chapter 5. Initialisers: bounds, spread, and equal numbers for equal seeds.
#include "nn/init.h"

#include <doctest/doctest.h>

#include "nn/attention/attention.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Init;

namespace {

double largest(const Tensor& x) { return distance(x, zeros(x.shape(), x.dtype())); }
double variance(const Tensor& x) { return sum_of_squares(x) / static_cast<double>(x.count()); }

}  // namespace

TEST_CASE("a uniform weight fills its interval and has the variance a^2 / 3") {
  Rng rng(3);
  const double xavier = std::sqrt(6.0 / (300 + 100)), pytorch = 1 / std::sqrt(100.0);
  const Tensor x = nn::initial_weight(Init::xavier, 300, 100, rng),
               p = nn::initial_weight(Init::pytorch_linear, 300, 100, rng);
  REQUIRE(x.shape() == Shape{300, 100});
  CHECK(largest(x) <= xavier * (1 + 1e-6));
  CHECK(largest(x) > 0.99 * xavier);
  CHECK(variance(x) == doctest::Approx(xavier * xavier / 3).epsilon(0.02));
  CHECK(largest(p) <= pytorch * (1 + 1e-6));
  CHECK(variance(p) == doctest::Approx(pytorch * pytorch / 3).epsilon(0.02));
}

TEST_CASE("normal weights and embeddings have the standard deviation they are named for") {
  Rng rng(3);
  CHECK(variance(nn::initial_weight(Init::normal_001, 200, 100, rng)) == doctest::Approx(1e-4).epsilon(0.03));
  CHECK(variance(nn::initial_weight(Init::normal_002, 200, 100, rng)) == doctest::Approx(4e-4).epsilon(0.03));
  CHECK(variance(nn::initial_embedding(500, 64, rng)) == doctest::Approx(1.0 / 64).epsilon(0.03));
}

TEST_CASE("biases: uniform by fan_in as in PyTorch, or zero") {
  Rng rng(3);
  const Tensor bias = nn::initial_bias(Init::xavier, 1000, 25, rng);
  CHECK(largest(bias) <= 0.2);
  CHECK(largest(bias) > 0.19);
  CHECK(largest(nn::initial_bias(Init::normal_001, 10, 4, rng)) == 0);
  CHECK(largest(nn::initial_bias(Init::normal_002, 10, 4, rng)) == 0);
  nn::MultiHeadAttention attention(8, 2, rng);
  CHECK(largest(attention.in_proj.bias.value()) == 0);
  CHECK(largest(attention.out_proj.bias.value()) == 0);
}

TEST_CASE("the packed projection of attention counts as one matrix [3 d_model, d_model]") {
  Rng rng(3);
  const nn::MultiHeadAttention attention(64, 4, rng);
  const double bound = std::sqrt(6.0 / (3 * 64 + 64));
  CHECK(largest(attention.in_proj.weight.value()) <= bound);
  CHECK(largest(attention.in_proj.weight.value()) > 0.99 * bound);
}

TEST_CASE("equal seeds give equal weights") {
  Rng a(5), b(5), c(6);
  const Tensor x = nn::initial_weight(Init::xavier, 3, 4, a);
  CHECK(same_bits(x, nn::initial_weight(Init::xavier, 3, 4, b)));
  CHECK_FALSE(same_bits(x, nn::initial_weight(Init::xavier, 3, 4, c)));
}
