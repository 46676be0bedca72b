// Chapter 9. Tests of OperationTimes: calls, operations and bytes, known from shapes.
#include "apps/measure/bench/operation_times.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

Variable ones(const Shape& shape) { return parameter(full(shape, 1.0)); }

// What an observer sees of one evaluation of f, forward and backward.
template <class F>
std::vector<OperationTime> seen(const F& f) {
  OperationTimes times;
  const ObserverScope scope(times);
  const Variable y = f();
  backward(y, full(y.shape(), 1.0));
  return times.summed_up();
}

OperationTime find(const std::vector<OperationTime>& all, const std::string& name, bool backward) {
  for (const OperationTime& time : all)
    if (time.name == name && time.backward == backward) return time;
  FAIL("not seen: ", name);
  return {};
}

}  // namespace

TEST_CASE("a product of m x k and k x n takes 2 m n k operations, backward twice as many") {
  const auto check_product = [](const Shape& a, const Shape& b, Trans trans, double flop) {
    const auto all = seen([&] { return matmul(ones(a), ones(b), trans); });
    CHECK(find(all, "matmul", false).flop == flop);
    CHECK(find(all, "matmul", true).flop == 2 * flop);
    CHECK(find(all, "matmul", false).bytes == 0);
  };
  check_product({3, 4}, {4, 5}, Trans::none, 2 * 3 * 4 * 5);
  check_product({3, 4}, {5, 4}, Trans::b, 2 * 3 * 4 * 5);
  check_product({4, 3}, {4, 5}, Trans::a, 2 * 3 * 4 * 5);
  check_product({7, 3, 4}, {5, 4}, Trans::b, 7 * 2 * 3 * 4 * 5);            // a shared right factor
  check_product({2, 7, 3, 4}, {2, 7, 5, 4}, Trans::b, 14 * 2 * 3 * 4 * 5);  // a batch
}

TEST_CASE("fused products are products") {
  const auto all = seen([] { return linear_relu(ones({2, 3, 4}), ones({5, 4}), ones({5})); });
  CHECK(find(all, "linear_relu", false).flop == 2 * 6 * 4 * 5);
  CHECK(find(all, "linear_relu", true).flop == 2 * 2 * 6 * 4 * 5);
}

TEST_CASE("linear maps of different shapes are told apart") {
  const auto all = seen([] {
    const Variable x = ones({2, 3, 4});
    return linear(linear(x, ones({5, 4}), ones({5})), ones({7, 5}), Variable());
  });
  CHECK(all.size() == 4);
  for (const OperationTime& time : all) {
    CHECK(time.name == "linear");
    CHECK(time.calls == 1);
    const bool first = time.shape == "[6,4] to 5";
    CHECK((first || time.shape == "[6,5] to 7"));
    const double forward = first ? 2 * 6 * 4 * 5 : 2 * 6 * 5 * 7;
    CHECK(time.flop == (time.backward ? 2 * forward : forward));
  }
}

TEST_CASE("attention is two products of every head") {
  const double flop = 2.0 * 3 * 5 * 5 * (2 * 4 + 2 * 6);  // B n m (h d_k + h d_v), twice
  const auto self = seen([] { return packed_attention(ones({3, 5, 2 * (4 + 4 + 6)}), {2, 4, 6}, Mask()); });
  CHECK(find(self, "packed_attention", false).flop == flop);
  CHECK(find(self, "packed_attention", true).flop == 2 * flop);
  const auto cross = seen([] {
    return packed_attention(ones({3, 7, 2 * 4}), ones({3, 5, 2 * (4 + 6)}), {2, 4, 6}, Mask());
  });
  CHECK(find(cross, "packed_attention", false).flop == flop / 5 * 7);
}

TEST_CASE("other operations move their inputs and outputs") {
  const auto all = seen([] {
    const Variable x = ones({8, 4}), row = ones({4});
    return relu(relu(x)) + row;
  });
  CHECK(find(all, "relu", false).calls == 2);
  CHECK(find(all, "relu", false).bytes == 2 * (128 + 128));
  CHECK(find(all, "relu", true).calls == 2);
  CHECK(find(all, "add", false).bytes == 128 + 16 + 128);
  CHECK(find(all, "add", true).calls == 1);
}

TEST_CASE("what is only handed on is not traffic") {
  const auto all = seen([] { return reshape(relu(ones({8, 4})), {32}); });
  CHECK(find(all, "reshape", false).bytes == 0);
  CHECK(find(all, "relu", true).bytes == 128 + 128);
}

TEST_CASE("a lookup reads as many rows as it writes, and writes a whole gradient") {
  const auto all = seen([] { return embedding(ones({100, 4}), full({8}, 3, Dtype::i32)); });
  CHECK(find(all, "embedding", false).bytes == 2 * 8 * 16);
  CHECK(find(all, "embedding", true).bytes == 8 * 16 + 100 * 16);
}

TEST_CASE("each name stands once for each direction, the slowest first") {
  const auto all = seen([] { return relu(exp(relu(ones({8, 4})))); });
  CHECK(all.size() == 4);
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i].seconds <= all[i - 1].seconds);
}
