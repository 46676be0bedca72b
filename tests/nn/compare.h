// Chapter 5. What the tests of layers share: distances between tensors, and naive products to compare with.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "autograd/observer.h"
#include "autograd/variable.h"
#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "tests/core/support.h"

namespace orrery {

/// The largest |a - b|; infinite where shapes differ or a number is NaN.
inline double distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  double worst = 0;
  for (i64 i = 0; i < a.count(); ++i) {
    const double d = std::abs(a.at(i) - b.at(i));
    if (!(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  }
  return worst;
}

/// The largest difference in parts of the largest number.
inline double relative(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (i64 i = 0; i < b.count(); ++i) largest = std::max(largest, std::abs(b.at(i)));
  return distance(a, b) / largest;
}

/// What rounding may make of `relative` where the same is computed in another order.
inline double bound(Dtype dtype) { return dtype == f32 ? 1e-5 : 1e-12; }

using small::all_finite;

/// x W^T + b by loops, x [rows, in], W [out, in], f64; b may be undefined.
inline Tensor naive_linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  const i64 in = W.size(1), out = W.size(0), rows = x.count() / in;
  Tensor y = zeros(x.shape().without_last().plus(out), f64);
  for (i64 r = 0; r < rows; ++r) {
    for (i64 o = 0; o < out; ++o) {
      double sum = b.defined() ? b.at(o) : 0;
      for (i64 i = 0; i < in; ++i) sum += x.at(r * in + i) * W.at(o * in + i);
      y.write<double>()[r * out + o] = sum;
    }
  }
  return y;
}

/// Lets operation number `left` of a pass fail, counted from 0, and none after it.
struct FailingAt final : Observer {
  i64 left;
  explicit FailingAt(i64 left) : left(left) {}
  void forward_begins(std::string_view, std::span<const Variable* const>) override {
    if (left-- == 0) fail("test", "stop");
  }
};

/// While it is in force, an operation that is put on the tape fails the test.
struct NothingRecorded final : Observer {
  void recorded(const Node& node) override { FAIL_CHECK(node.name, " was recorded"); }
};

inline std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const NamedParameter& p : parameters) names.push_back(p.name);
  return names;
}

/// Every parameter replaced by noise, so that biases and norms take part; the module becomes f64.
inline void make_noisy(nn::Module& module, u64 seed) {
  Rng rng(seed);
  nn::to(module, f64);
  for (NamedParameter& p : module.parameters())
    copy_into(p.value.mutable_value(), randn(p.value.shape(), rng, f64) * 0.5);
}

/// A GPT of two layers, and one of any sizes.
inline nn::GptConfig small_gpt() {
  return {.vocab_size = 9,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_layers = 2,
          .max_len = 6};
}
inline nn::Gpt build_gpt(const nn::GptConfig& config, u64 seed = 1) {
  Rng rng(seed);
  return {config, rng};
}

}  // namespace orrery
