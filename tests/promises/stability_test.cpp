// Chapter 8. Promises 14 and 15: softmax and its logarithm at logits of 1e4, and no denormal number out of any thread.
#include <doctest/doctest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "autograd/check/samples.h"
#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// [rows, columns] in f32: logits within 8 of 1e4, of -1e4, or of both, a few of them -infinity.
Tensor large_logits(i64 rows, i64 columns) {
  Rng rng(8);
  Tensor x = Tensor::empty({rows, columns});
  for (i64 i = 0; i < x.count(); ++i) {
    const i64 kind = i / columns % 3;  // of the row: positive, negative, or both
    const bool negative = kind == 2 ? rng.integer(0, 2) != 0 : kind == 1;
    const double centre = negative ? -1e4 : 1e4;
    const bool hidden = i % columns != 0 && rng.integer(0, 10) == 0;
    x.write<float>()[i] = hidden ? -INFINITY : static_cast<float>(centre + 16 * rng.uniform() - 8);
  }
  return x;
}

// The largest |got - exact| / |exact|; infinite where exact is 0 or infinite and got is something else.
double relative_error(const Tensor& got, const Tensor& exact) {
  double worst = 0;
  for (i64 i = 0; i < got.count(); ++i) {
    if (got.at(i) == exact.at(i)) continue;
    const double error = std::fabs(got.at(i) - exact.at(i)) / std::fabs(exact.at(i));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

// log sum_j e^{x_j - m} of each row by its definition, and the row's maximum m.
struct LogSum {
  long double largest, log_total;
};
LogSum log_sum(const Tensor& x, i64 row) {
  const i64 n = x.size(-1);
  long double largest = -INFINITY, total = 0;
  for (i64 i = 0; i < n; ++i) largest = std::max<long double>(largest, x.at(row * n + i));
  for (i64 i = 0; i < n; ++i) total += std::exp(static_cast<long double>(x.at(row * n + i)) - largest);
  return {largest, std::log(total)};
}

}  // namespace

TEST_CASE("promise 14: softmax, log_softmax and cross entropy at logits of 1e4 and -infinity, within 1e-6") {
  const Tensor x = large_logits(30, 50);
  Tensor p = Tensor::empty(x.shape(), f64), logs = Tensor::empty(x.shape(), f64);
  long double loss = 0;
  for (i64 i = 0; i < x.count(); ++i) {
    const LogSum row = log_sum(x, i / 50);
    const long double log_p = static_cast<long double>(x.at(i)) - row.largest - row.log_total;
    logs.write<double>()[i] = static_cast<double>(log_p);
    // Below the smallest normal number f32 holds 0.
    p.write<double>()[i] =
        log_p < std::log(static_cast<long double>(FLT_MIN)) ? 0 : static_cast<double>(std::exp(log_p));
    if (i % 50 == 0) loss -= log_p;
  }
  CHECK(relative_error(softmax(constant(x)).value(), p) <= 1e-6);
  CHECK(relative_error(log_softmax(constant(x)).value(), logs) <= 1e-6);
  const Variable logits = parameter(x.clone());
  const Variable entropy = cross_entropy(logits, full({30}, 0, Dtype::i32), {.reduction = Reduction::sum});
  CHECK(std::fabs(entropy.item() / static_cast<double>(loss) - 1) <= 1e-6);
  backward(entropy);
  for (i64 i = 0; i < x.count(); ++i) CHECK(std::fabs(logits.gradient().at(i) - p.at(i) + (i % 50 == 0)) <= 1e-6);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("promise 15: gradients of 1e-30 end as 0 or as normal numbers, the same for any threads") {
  Rng rng(2);
  const Tensor x = randn({300, 200}, rng), w = randn({200, 100}, rng) * 1e-9, dy = randn({300, 100}, rng) * 1e-30;
  const auto gradients = [&] {
    const Variable a = parameter(x.clone()), b = parameter(w.clone());
    backward(matmul(tanh(a), b), dy);
    return concat({a.gradient().reshape({-1}), b.gradient().reshape({-1})}, 0);
  };
  CHECK(small::same_for_any_threads(gradients));
  const Tensor g = gradients();
  i64 denormal = 0, zero = 0;
  for (i64 i = 0; i < g.count(); ++i) {
    // By its bits: to comparisons, which take denormal numbers as zero here, it would be 0.
    const u32 magnitude = std::bit_cast<u32>(g.data<float>()[i]) & 0x7FFFFFFF;
    denormal += magnitude > 0 && magnitude < 0x00800000;
    zero += magnitude == 0;
  }
  CHECK(denormal == 0);
  CHECK(zero > 30'000);  // dL/da is about 1e-38
  CHECK(zero < g.count());
}
#endif

#if defined(__x86_64__)
TEST_CASE("promise 15: no operation meets a denormal number, not even on the calling thread") {
  constexpr unsigned denormal_met = 0x2;  // stands in the register since an instruction met one
  const auto make_denormal = [](Tensor x) {
    if (x.dtype() == f32) std::fill_n(x.write<float>(), x.count(), std::numeric_limits<float>::denorm_min());
    return x;
  };
  const small::Threads one(1);
  for (const Sample& sample : operation_samples()) {
    CAPTURE(sample.name);
    CAPTURE(sample.variant);
    const Checkable f = sample.build(f32);
    for (const NamedParameter& leaf : f.leaves) make_denormal(Variable(leaf.value).mutable_value());
    const Tensor ones = full(f.output().shape(), 1.0);
    const Tensor dy = ones.count() == 1 ? ones : make_denormal(ones);  // a single dL/dy is read once, and by no loop
    _mm_setcsr(_mm_getcsr() & ~denormal_met);
    f.walk(f.output(), dy);
    CHECK((_mm_getcsr() & denormal_met) == 0);
  }
}
#endif
