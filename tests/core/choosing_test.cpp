// Chapter 1. Tests of comparing, choosing, ordering, and of running sums; ranges as tensors and back.
#include "core/choosing.h"

#include <doctest/doctest.h>

#include <list>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {
const double not_a_number = std::nan("");
Tensor ids(const Shape& shape, const std::vector<i32>& elements) { return Tensor::of(shape, elements); }
}  // namespace

TEST_CASE("comparisons give 1 and 0, broadcast, and hold for ids too; with NaN only != holds") {
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 2}), row = Tensor::of<float>({2}, {2, 2});
  CHECK((a < row).dtype() == Dtype::i32);
  CHECK(elements(a < row) == Numbers{1, 0, 0, 0});
  CHECK(elements(a <= 2) == Numbers{1, 1, 0, 1});
  CHECK(elements(a > row) == Numbers{0, 0, 1, 0});
  CHECK(elements(a >= 2.0) == Numbers{0, 1, 1, 1});
  CHECK(elements(a == 2) == Numbers{0, 1, 0, 1});
  CHECK(elements(a != row) == Numbers{1, 0, 1, 0});
  CHECK(elements(arange(3) == ids({3}, {0, 2, 2})) == Numbers{1, 0, 1});
  CHECK(elements(arange(3) > 0.5) == Numbers{0, 1, 1});
  const Tensor none = vector_of({not_a_number, not_a_number});
  CHECK(elements(none < 1) == Numbers{0, 0});
  CHECK(elements(none == none) == Numbers{0, 0});
  CHECK(elements(none != none) == Numbers{1, 1});
  CHECK(error_of([&] { (void)(a < vector_of({1, 2})); }) == "compare: dtypes differ (f32 and f64)");
}

TEST_CASE("where chooses element by element, and what is not chosen may be NaN") {
  const Tensor x = vector_of({1, not_a_number, 3}), y = full({2, 1}, 9.0, f64);
  CHECK(elements(where(ids({3}, {1, 0, -5}), x, y)) == Numbers{1, 9, 3, 1, 9, 3});
  CHECK(elements(where(arange(3) > 0, arange(3), ids({}, {7}))) == Numbers{7, 1, 2});
  CHECK(contains(error_of([&] { where(x, x, y); }), "where: the condition must be i32"));
  CHECK(contains(error_of([&] { where(arange(3), x, arange(3)); }), "where: dtypes differ (f64 and i32)"));
}

TEST_CASE("one_hot, rows by id, gather and scatter") {
  const Tensor x = arange(6).reshape({3, 2});
  CHECK(elements(one_hot(ids({2}, {2, 0}), 3)) == Numbers{0, 0, 1, 1, 0, 0});
  CHECK(index_rows(x, ids({2, 1}, {2, 0})).shape() == Shape{2, 1, 2});
  CHECK(elements(index_rows(x, ids({2}, {2, 0}))) == Numbers{4, 5, 0, 1});
  CHECK(elements(gather(x, 0, ids({2, 2}, {0, 2, 1, 1}))) == Numbers{0, 5, 2, 3});
  CHECK(elements(gather(x, -1, ids({3, 1}, {1, 0, 1}))) == Numbers{1, 2, 5});
  Tensor y = zeros({3, 2}, Dtype::i32);
  scatter_into(y, 0, ids({1, 2}, {2, 0}), ids({1, 2}, {7, 8}), false);
  CHECK(elements(y) == Numbers{0, 8, 0, 0, 7, 0});
  scatter_into(y, 0, ids({2, 2}, {2, 0, 2, 0}), ids({2, 2}, {1, 2, 3, 4}), true);
  CHECK(elements(y) == Numbers{0, 14, 0, 0, 11, 0});
  CHECK(error_of([&] { index_rows(x, ids({2}, {0, 3})); }) == "index_rows: id 3 at position 1 is outside [0, 3)");
  CHECK(error_of([&] { one_hot(zeros({1}), 3); }) == "one_hot: ids must be i32");
  CHECK(error_of([&] { gather(x, 0, arange(3)); }) == "gather: ids [3] do not fit a tensor [3, 2] along axis 0");
  CHECK(contains(error_of([&] {
                   scatter_into(y, 0, ids({2, 2}, {1, 0, 1, 2}), x.rows(0, 2), false);
                 }),
                 "scatter: id 1 at position 2 writes to an element that has been written already"));
  CHECK(contains(error_of([&] {
                   scatter_into(y, 0, ids({1, 2}, {1, 0}), zeros({1, 2}), false);
                 }),
                 "scatter: ids [1, 2] and i32 numbers need a part like them, got f32 [1, 2]"));
  Tensor order = ids({2}, {1, 0});  // else its second id would be the first number written
  CHECK(contains(error_of([&] { scatter_into(order, 0, order, ids({2}, {1000, 5}), false); }), "may share memory"));
}

TEST_CASE("sorted order and the largest k: equal numbers keep their order, NaN counts as the largest") {
  const Tensor x = Tensor::of<double>({2, 4}, {3, 1, 3, 2, not_a_number, -1, not_a_number, 0});
  CHECK(elements(argsort(x)) == Numbers{1, 3, 0, 2, 1, 3, 0, 2});
  CHECK(elements(argsort(x, true)) == Numbers{0, 2, 3, 1, 0, 2, 3, 1});
  const TopK best = topk(x, 3);
  CHECK(elements(best.ids) == Numbers{0, 2, 3, 0, 2, 3});
  CHECK(elements(best.values.rows(0, 1)) == Numbers{3, 3, 2});
  CHECK(topk(x, 0).ids.shape() == Shape{2, 0});
  CHECK(error_of([&] { topk(x, 5); }) == "topk: k must lie in [0, 4], got 5");
}

TEST_CASE("minima, and running sums along any axis, which are added in double") {
  const Tensor x = Tensor::of<double>({2, 3}, {4, 2, 6, 1, 5, 3});
  CHECK(elements(min(x, {0})) == Numbers{1, 2, 3});
  CHECK(min(x).item() == 1);
  CHECK(std::isnan(min(vector_of({1, not_a_number, 0})).item()));
  CHECK(error_of([] { min(zeros({0})); }) == "min: has no elements to choose from, shape [0]");
  CHECK(elements(cumulative_sum(x, -1)) == Numbers{4, 6, 12, 1, 6, 9});
  CHECK(elements(cumulative_sum(x, 0)) == Numbers{4, 2, 6, 5, 7, 9});
  const Tensor many = cumulative_sum(full({1 << 20}, 0.1), 0);
  CHECK(many.at((1 << 20) - 1) == doctest::Approx((1 << 20) * double{0.1F}).epsilon(1e-7));
}

TEST_CASE("accuracy is the share of the labels that count") {
  const Tensor logits = Tensor::of<double>({3, 2}, {1, 0, 0, 1, 2, 1});
  CHECK(accuracy(logits, ids({3}, {0, 1, 1})) == doctest::Approx(2.0 / 3));
  CHECK(accuracy(logits, ids({3}, {0, -100, 1})) == 0.5);
  CHECK(accuracy(logits, ids({3}, {7, 7, 7}), 7) == 0);
  CHECK(error_of([&] {
          accuracy(logits, ids({2}, {0, 1}));
        }) == "accuracy: logits [3, 2] need i32 labels of shape [3]");
}

TEST_CASE("any range becomes a tensor of the dtype that its elements suggest, and a tensor a vector") {
  CHECK(Tensor::of({2}, std::list<double>{1, 2}).dtype() == f64);
  CHECK(Tensor::of({2}, std::array<float, 2>{1, 2}).dtype() == f32);
  CHECK(elements(Tensor::of({2}, std::vector<bool>{true, false})) == Numbers{1, 0});
  CHECK(Tensor::of({1, 2}, std::vector<size_t>{5, 6}).to_vector<i64>() == std::vector<i64>{5, 6});
  CHECK(full({2}, 1.5).to_vector<float>() == std::vector<float>{1.5F, 1.5F});
  CHECK(contains(error_of([] { Tensor::of({1}, std::vector<i64>{i64{1} << 31}); }), "does not fit into i32"));
}
