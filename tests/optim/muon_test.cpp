// Chapter 5. Tests of Muon: singular values, which matrices it moves, and special cases; its steps are PyTorch's
// (tests/torch/optim_test.cpp).
#include "optim/muon.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

// What the five steps of the iteration make of a singular value s.
double iterate(double s) {
  for (int i = 0; i < 5; ++i) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  return s;
}

// U diag(s) V^T, where U [m, k] and V [n, k] have orthonormal columns.
struct Decomposed {
  Tensor U, V;
  std::vector<double> s;
  Tensor with(const std::vector<double>& values) const {
    Tensor scaled = U.clone();
    for (i64 i = 0; i < U.size(0); ++i)
      for (i64 j = 0; j < U.size(1); ++j) scaled(i, j) = U(i, j) * values[static_cast<size_t>(j)];
    return matmul(scaled, V, Trans::b);
  }
};

// Orthonormal columns from random ones, by Gram and Schmidt.
Tensor orthonormal(i64 rows, i64 columns, Rng& rng) {
  Tensor Q = randn({rows, columns}, rng, f64);
  for (i64 j = 0; j < columns; ++j) {
    for (int twice = 0; twice < 2; ++twice) {
      for (i64 before = 0; before < j; ++before) {
        double along = 0;
        for (i64 i = 0; i < rows; ++i) along += Q(i, j) * Q(i, before);
        for (i64 i = 0; i < rows; ++i) Q(i, j) = Q(i, j) - along * Q(i, before);
      }
    }
    double norm = 0;
    for (i64 i = 0; i < rows; ++i) norm += Q(i, j) * Q(i, j);
    for (i64 i = 0; i < rows; ++i) Q(i, j) = Q(i, j) / std::sqrt(norm);
  }
  return Q;
}

Decomposed decomposed(i64 m, i64 n, Rng& rng) {
  const i64 k = std::min(m, n);
  Decomposed d{orthonormal(m, k, rng), orthonormal(n, k, rng), {}};
  for (i64 j = 0; j < k; ++j) d.s.push_back(std::pow(0.3, j));
  return d;
}

Variable random_parameter(const Shape& shape, const std::string& name, Rng& rng, Dtype dtype = f64) {
  return parameter(randn(shape, rng, dtype), name);
}

}  // namespace

TEST_CASE("the directions of a matrix stay, and their lengths become about 1") {
  Rng rng(1);
  for (const Shape& shape : {Shape{5, 5}, Shape{4, 9}, Shape{9, 4}, Shape{1, 6}, Shape{6, 1}}) {
    CAPTURE(shape);
    const i64 m = shape[0], n = shape[1];
    const Decomposed d = decomposed(m, n, rng);
    double norm = 0;
    for (const double s : d.s) norm += s * s;
    std::vector<double> expected;
    for (const double s : d.s) {
      expected.push_back(iterate(s / std::sqrt(norm)));
      CHECK(expected.back() > 0.65);
      CHECK(expected.back() < 1.25);
    }
    const Tensor found = optim::nearest_orthogonal(d.with(d.s)), right = d.with(expected);
    for (i64 i = 0; i < found.count(); ++i) CHECK(found.at(i) == doctest::Approx(right.at(i)).epsilon(1e-9));
    const Tensor longer = optim::nearest_orthogonal(d.with(d.s) * 1e6);  // its length does not matter
    for (i64 i = 0; i < found.count(); ++i) CHECK(longer.at(i) == doctest::Approx(right.at(i)).epsilon(1e-9));
  }
}

TEST_CASE("a matrix of zeros stays, and anything but a matrix is an error") {
  CHECK(elements(optim::nearest_orthogonal(zeros({2, 3}))) == std::vector<double>(6, 0));
  CHECK(error_of([] { optim::nearest_orthogonal(zeros({3})); }) == "muon: needs a matrix, got [3]");
}

TEST_CASE("matrices in numbered layers are hidden ones") {
  const auto hidden = [](const std::string& name, const Shape& shape) {
    return optim::is_hidden_matrix({name, parameter(zeros(shape), name)});
  };
  CHECK(hidden("h.0.attn.c_attn.weight", {2, 3}));
  CHECK(hidden("encoder.layers.11.linear1.weight", {2, 3}));
  CHECK(hidden("0.weight", {2, 3}));
  CHECK_FALSE(hidden("h.0.ln_1.weight", {3}));
  CHECK_FALSE(hidden("wte.weight", {2, 3}));
  CHECK_FALSE(hidden("block2.weight", {2, 3}));
  CHECK_FALSE(hidden("weight.0", {2, 3}));
  CHECK_FALSE(hidden("", {2, 3}));
}

TEST_CASE("a first step has the same size whatever the gradient's, so clipping does not change it") {
  Rng rng(3);
  const Tensor start = randn({3, 5}, rng, f64), G = randn({3, 5}, rng, f64);
  const auto moved = [&](double length, double max_norm) {
    Variable W = parameter(start.clone(), "0.weight");
    optim::Muon muon({W}, {.weight_decay = 0});
    W.mutable_gradient() = G * length;
    muon.step(0.01, max_norm);
    return W.value() - start;
  };
  const Tensor once = moved(1, 1e9), large = moved(1000, 1e9), clipped = moved(1, 1e-3);
  double squares = 0;
  for (i64 i = 0; i < once.count(); ++i) {
    CHECK(large.at(i) == doctest::Approx(once.at(i)).epsilon(1e-9));
    CHECK(clipped.at(i) == doctest::Approx(once.at(i)).epsilon(1e-9));
    squares += once.at(i) * once.at(i);
  }
  const double root_mean_square = std::sqrt(squares / static_cast<double>(once.count()));
  CHECK(root_mean_square > 0.2 * 0.01 * 0.6);  // of 3 singular values of about 1, in 15 numbers: 0.2 times 0.01
  CHECK(root_mean_square < 0.2 * 0.01 * 1.3);
}

TEST_CASE("steps end when the gradient stays zero, and a parameter without a gradient stays") {
  Rng rng(8);
  Variable W = random_parameter({3, 5}, "0.weight", rng, f32), other = random_parameter({3, 5}, "1.weight", rng, f32);
  const Tensor start = other.value().clone();
  optim::Muon muon({W, other}, {.momentum = 0.9, .weight_decay = 0});
  W.mutable_gradient() = randn({3, 5}, rng);
  muon.step(0.1);
  Tensor before;
  for (int step = 0; step < 400; ++step) {
    before = W.value().clone();
    W.mutable_gradient() = zeros({3, 5});
    muon.step(0.1);
    if (step == 10) CHECK_FALSE(same_bits(before, W.value()));
  }
  CHECK(same_bits(before, W.value()));
  CHECK(same_bits(other.value(), start));
}

TEST_CASE("groups have weight decay of their own") {
  const auto moved = [](std::optional<double> of_group) {
    Variable W = parameter(full({2, 2}, 1.0, f64), "0.weight");
    optim::Muon muon(optim::ParameterGroups{optim::ParameterGroup{{{"0.weight", W}}, of_group}}, {.weight_decay = 0.5});
    W.mutable_gradient() = zeros({2, 2}, f64);
    muon.step(0.1);
    return W.value()(0, 0);
  };
  CHECK(moved(std::nullopt) == doctest::Approx(1 - 0.1 * 0.5).epsilon(1e-14));
  CHECK(moved(0.25) == doctest::Approx(1 - 0.1 * 0.25).epsilon(1e-14));
}

TEST_CASE("a step after a restored state has the same bits") {
  Rng rng(5);
  const Tensor start = randn({4, 4}, rng), first = randn({4, 4}, rng), second = randn({4, 4}, rng);
  Variable W = parameter(start.clone(), "0.weight");
  optim::Muon muon({W});
  W.mutable_gradient() = first.clone();
  muon.step(0.1);
  Variable copy = parameter(W.value().clone(), "0.weight");
  optim::Muon resumed({copy});
  resumed.load_state(muon.state());
  W.mutable_gradient() = second.clone();
  copy.mutable_gradient() = second.clone();
  muon.step(0.1);
  resumed.step(0.1);
  CHECK(same_bits(W.value(), copy.value()));
}

TEST_CASE("a matrix with weak directions is found") {
  Rng rng(7);
  const Tensor target = decomposed(6, 6, rng).with({1, 0.5, 0.25, 0.125, 0.06, 0.03});
  Variable W = parameter(zeros({6, 6}, f64), "0.weight");
  optim::Muon muon({W}, {.weight_decay = 0});
  for (int step = 0; step < 300; ++step) {
    W.mutable_gradient() = W.value() - target;
    muon.step(0.05 * (1 - step / 300.0));
  }
  for (i64 i = 0; i < target.count(); ++i) CHECK(std::abs(W.value().at(i) - target.at(i)) < 1e-2);
}

TEST_CASE("options of Muon that are out of range are errors that name them") {
  const auto made = [](const optim::MuonOptions& options) {
    return error_of([&] { optim::Muon({parameter(zeros({2, 2}), "0.weight")}, options); });
  };
  CHECK(error_of([] {
          optim::Muon({parameter(zeros({2, 2}), "fc1.weight")});
        }) == "muon: no matrix is in a numbered layer, such as h.0.attn.weight: AdamW would move all parameters");
  CHECK(made({.momentum = 1}) == "muon: momentum must be in [0, 1), got 1");
  CHECK(made({.beta2 = 1}) == "adam: beta2 must be in [0, 1), got 1");
  CHECK(made({.weight_decay = -1}) == "optimizer: weight decay must be 0 or more and finite, got -1");
}
