// Chapter 4. Products of matrices: values and gradients against three loops, every transpose, batches, errors.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {

// op(a) op(b) by the definition; a [batch, ., .], b [batch or 1, ., .].
std::vector<double> product(const Tensor& a, const Tensor& b, Trans trans) {
  const bool ta = transposes_a(trans), tb = transposes_b(trans);
  const i64 m = a.size(ta ? -1 : -2), k = a.size(ta ? -2 : -1), n = b.size(tb ? -2 : -1);
  std::vector<double> c;
  for (i64 batch = 0; batch < a.count() / (m * k); ++batch) {
    const i64 shift = b.rank() == 2 ? 0 : batch * k * n;
    for (i64 i = 0; i < m; ++i) {
      for (i64 j = 0; j < n; ++j) {
        double total = 0;
        for (i64 l = 0; l < k; ++l) {
          total += a.at(batch * m * k + (ta ? l * m + i : i * k + l)) * b.at(shift + (tb ? j * k + l : l * n + j));
        }
        c.push_back(total);
      }
    }
  }
  return c;
}

Shape turned(const Shape& shape, bool turn) {
  return turn ? shape.with(shape.rank() - 2, shape[-1]).with(shape.rank() - 1, shape[-2]) : shape;
}

}  // namespace

TEST_CASE("matmul equals three loops for every transpose, shared and batched, f64 and f32") {
  for (const Trans trans : {Trans::none, Trans::a, Trans::b, Trans::both}) {
    for (const auto& [left, right] : {std::pair{Shape{5, 7}, Shape{7, 3}},
                                      {Shape{1, 1}, Shape{1, 1}},
                                      {Shape{3, 5, 7}, Shape{3, 7, 2}},
                                      {Shape{2, 3, 1, 4}, Shape{2, 3, 4, 6}}}) {
      const Tensor a = normal(turned(left, transposes_a(trans)), 1), b = normal(turned(right, transposes_b(trans)), 2);
      CHECK(close(matmul(constant(a), constant(b), trans).value(), product(a, b, trans)));
      CHECK(close(matmul(constant(a.to(f32)), constant(b.to(f32)), trans).value(), product(a, b, trans), 5e-6));
    }
  }
  const Tensor a = normal({2, 3, 4}, 1), b = normal({4, 5}, 2);
  CHECK(close(matmul(constant(a), constant(b)).value(), product(a, b, Trans::none)));
}

TEST_CASE("matmul's gradients are dy b^T and a^T dy") {
  const Variable a = parameter(normal({4, 3}, 1)), b = parameter(normal({3, 2}, 2));
  const Tensor dy = normal({4, 2}, 3);
  backward(matmul(a, b), dy);
  CHECK(close(a.gradient(), product(dy, b.value(), Trans::b)));
  CHECK(close(b.gradient(), product(a.value(), dy, Trans::a)));
}

TEST_CASE("a product over no element is 0, and gradients of no element are empty") {
  const Variable a = parameter(zeros({2, 0}, f64)), b = parameter(zeros({0, 3}, f64));
  const Variable y = matmul(a, b);
  CHECK(close(y.value(), {0, 0, 0, 0, 0, 0}));
  backward(y, normal({2, 3}));
  CHECK(a.gradient().shape() == Shape{2, 0});
  const Variable none = parameter(zeros({0, 3}, f64)), weight = parameter(normal({3, 2}));
  backward(matmul(none, weight), zeros({0, 2}, f64));
  CHECK(close(weight.gradient(), {0, 0, 0, 0, 0, 0}));
}

TEST_CASE("matmul's errors name the rule, the shapes and where the inputs came from") {
  const Variable x = parameter(zeros({32, 10, 64})), weight = parameter(zeros({128, 512}), "linear1.weight");
  CHECK(error_of([&] { (void)matmul(gelu(x), weight); }) ==
        "matmul: inner sizes differ (64 != 128)\n"
        "  input 0: [32, 10, 64]  from gelu\n"
        "  input 1: [128, 512]    from parameter linear1.weight");
  CHECK(contains(error_of([&] { (void)matmul(parameter(zeros({3})), weight); }), "matmul: needs matrices"));
  CHECK(contains(error_of([&] {
                   (void)matmul(parameter(zeros({2, 3, 4})), parameter(zeros({3, 4, 2})));
                 }),
                 "matmul: leading axes differ"));
  CHECK(contains(error_of([&] {
                   (void)matmul(parameter(zeros({2, 2}, f64)), parameter(zeros({2, 2})));
                 }),
                 "matmul: dtypes differ (f64 and f32)"));
}

TEST_CASE("matmul has the same bits for any number of threads") {
  const auto f = [](const auto& x) { return matmul(x[0], x[1]); };
  CHECK(thread_proof(f, {{257, 131}, {131, 419}}));
  CHECK(thread_proof(f, {{7, 33, 17}, {7, 17, 65}}));
  CHECK(thread_proof([](const auto& x) { return matmul(x[0], x[1], Trans::b); }, {{3, 101, 63}, {205, 63}}));
}
