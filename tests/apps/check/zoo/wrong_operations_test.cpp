// Chapter 6. Tests of the wrong operations: right values, wrong gradients, inputs on which a mistake stays hidden.
#include "apps/check/zoo/wrong_operations.h"

#include <doctest/doctest.h>

#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::normal;

namespace {

Variable of(const Shape& shape, u64 seed, Dtype dtype) { return constant(normal(shape, seed, dtype)); }
Tensor ids(const std::vector<i32>& elements) { return Tensor::of<i32>({static_cast<i64>(elements.size())}, elements); }

void check_equal(const Variable& a, const Variable& b) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  for (i64 i = 0; i < a.value().count(); ++i) CHECK(a.value().at(i) == doctest::Approx(b.value().at(i)).epsilon(1e-5));
}

}  // namespace

TEST_CASE("wrong backwards have right values, in f32 and in f64") {
  for (const Dtype dtype : {f32, f64}) {
    CAPTURE(dtype);
    const Variable x = of({2, 3, 4}, 1, dtype), w = of({4}, 2, dtype), b = of({4}, 3, dtype), m = of({4, 4}, 4, dtype);
    const Draw draw{.seed = 2};
    check_equal(bugs::softmax_without_inner_product(x), softmax(x));
    check_equal(bugs::layer_norm_without_mean_term(x, w, b, 1e-3), layer_norm(x, w, b, 1e-3));
    check_equal(bugs::layer_norm_with_constant_deviation(x, w, b, 1e-3), layer_norm(x, w, b, 1e-3));
    check_equal(bugs::scores_unscaled_in_backward(x, x), matmul(x, x, Trans::b) * 0.5);
    check_equal(bugs::linear_with_bias_summed_over_wrong_axis(x, m, b), matmul(x, m, Trans::b) + b);
    check_equal(bugs::matmul_without_transposes(x, m), matmul(x, m));
    check_equal(bugs::embedding_overwritten_on_repeats(m, ids({3, 0, 3})), embedding(m, ids({3, 0, 3})));
    check_equal(bugs::dropout_not_rescaled_in_backward(x, 0.5, draw), dropout(x, 0.5, draw));
    check_equal(bugs::dropout_with_fresh_mask_in_backward(x, 0.5, draw), dropout(x, 0.5, draw));
    check_equal(bugs::cross_entropy_divided_by_all_targets(m, ids({3, 0, -100, 1})),
                cross_entropy(m, ids({3, 0, -100, 1})));
    check_equal(bugs::add_without_sum_over_broadcast(m, b), m + b);
    check_equal(bugs::gelu_with_derivative_of_tanh_form(x), gelu(x));
    check_equal(bugs::tanh_with_derivative_at_input(x), tanh(x));
    check_equal(bugs::relu_with_derivative_at_zero(x), relu(x));
    check_equal(bugs::max_with_whole_gradient_to_all_ties(x, {1}, true), max(x, {1}, true));
    check_equal(bugs::max_with_whole_gradient_to_all_ties(x, {-1}, false), max(x, {-1}));
  }
}

TEST_CASE("a mistake stays hidden where its input does not touch it") {
  const auto finds = [](const auto& f, const std::vector<Tensor>& inputs) { return !gradcheck(f, inputs); };
  const auto entropy = [](const Tensor& targets) {
    return [=](const Variable& x) { return bugs::cross_entropy_divided_by_all_targets(x, targets); };
  };
  CHECK_FALSE(finds(entropy(ids({1, 0, 2})), {normal({3, 4}, 1)}));
  CHECK(finds(entropy(ids({1, 0, -100})), {normal({3, 4}, 1)}));
  const auto rows = [](const Tensor& tokens) {
    return [=](const Variable& table) { return bugs::embedding_overwritten_on_repeats(table, tokens); };
  };
  CHECK_FALSE(finds(rows(ids({1, 0})), {normal({3, 2}, 1)}));
  CHECK(finds(rows(ids({1, 1})), {normal({3, 2}, 1)}));
  const auto linear = [](const Variable& x, const Variable& w, const Variable& b) {
    return bugs::linear_with_bias_summed_over_wrong_axis(x, w, b);
  };
  CHECK(finds(linear, {normal({2, 3, 4}, 1), normal({3, 4}, 1), normal({3}, 1)}));
  CHECK_THROWS_AS(finds(linear, {normal({2, 5, 4}, 1), normal({3, 4}, 1), normal({3}, 1)}), Error);  // shapes tell
  const auto positive = [](const Variable& x) { return bugs::relu_with_derivative_at_zero(x * x); };
  CHECK_FALSE(finds(positive, {normal({3}, 1)}));
}

TEST_CASE("wrong values without a mask or with d_k = 1 are right, and otherwise wrong") {
  const Variable x = of({1, 2, 3, 4}, 1, f64), narrow = of({1, 2, 3, 1}, 1, f64);
  const auto differs = [](const AttentionResult& a, const AttentionResult& b) {
    double worst = 0;
    for (i64 i = 0; i < a.output.value().count(); ++i)
      worst = small::worse(worst, std::abs(a.output.value().at(i) - b.output.value().at(i)));
    return worst > 1e-3;
  };
  const Mask all, causal = Mask::causal();
  CHECK_FALSE(differs(bugs::attention_without_scale(narrow, narrow, x, causal), attention(narrow, narrow, x, causal)));
  CHECK(differs(bugs::attention_without_scale(x, x, x, causal), attention(x, x, x, causal)));
  CHECK_FALSE(differs(bugs::attention_masked_after_softmax(x, x, x, all), attention(x, x, x, all)));
  CHECK(differs(bugs::attention_masked_after_softmax(x, x, x, causal), attention(x, x, x, causal)));
  CHECK_FALSE(differs(bugs::attention_with_masked_scores_of_zero(x, x, x, all), attention(x, x, x, all)));
  CHECK(differs(bugs::attention_with_masked_scores_of_zero(x, x, x, causal), attention(x, x, x, causal)));
}
