// Chapter 5. Tests of averages of parameters, and of batches in random order.
#include "optim/average.h"

#include <doctest/doctest.h>

#include <set>

#include "core/tensor_ops.h"
#include "optim/batches.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using doctest::Approx;

TEST_CASE("a plain average weighs all alike, an exponential one by its decay, with weights that add up to 1") {
  Variable p = parameter(zeros({1}, f64));
  const Parameters parameters{{"p", p}};
  optim::Average plain, exponential(0.5);
  for (const double value : {8.0, 2.0, 5.0}) {
    p.mutable_value()(0) = value;
    plain.add(parameters);
    exponential.add(parameters);
  }
  CHECK(plain.values()[0].item() == Approx(5));
  CHECK(exponential.values()[0].item() == Approx((8 * 0.25 + 2 * 0.5 + 5) / 1.75));
  optim::Average again(0.5);
  again.set({exponential.values()[0].clone()}, exponential.count());
  for (optim::Average* average : {&again, &exponential}) average->add(parameters);
  CHECK(same_bits(again.values()[0], exponential.values()[0]));
  plain.with(parameters, [&] { CHECK(p.value().item() == Approx(5)); });
  CHECK_THROWS_AS(plain.with(parameters, [] { fail("test", "stops"); }), Error);
  CHECK(p.value().item() == 5.0);
  CHECK(contains(error_of([] { optim::Average(1.0); }), "average: the decay must lie in [0, 1), got 1"));
  CHECK(contains(error_of([&] { plain.add(Parameters{}); }), "average: has 1 tensors, got 0"));
}

TEST_CASE("batches have every row once an epoch, rows stay together, and each batch depends on its number alone") {
  const Tensor x = arange(10).reshape({5, 2}), y = arange(5);
  optim::Batches batches({x, y}, 2, Rng(1)), other({x, y}, 2, Rng(1));
  CHECK(batches.in_epoch() == 3);
  std::vector<std::vector<double>> orders;
  for (i64 epoch = 0; epoch < 2; ++epoch) {
    std::vector<double> order;
    for (i64 i = 0; i < 3; ++i) {
      const std::vector<Tensor> batch = batches.batch(3 * epoch + i);
      REQUIRE(batch[0].shape() == Shape{i < 2 ? 2 : 1, 2});
      for (i64 row = 0; row < batch[1].count(); ++row) {
        CHECK(batch[0].at(2 * row + 1) == 2 * batch[1].at(row) + 1);
        order.push_back(batch[1].at(row));
      }
    }
    CHECK(std::set<double>(order.begin(), order.end()).size() == 5);
    orders.push_back(order);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(same_bits(other.batch(4)[1], batches.batch(4)[1]));
  CHECK(contains(error_of([&] { optim::Batches({x, arange(4)}, 2, Rng(1)); }), "the tensors have 5 and 4 rows"));
  CHECK(contains(error_of([&] { optim::Batches({}, 2, Rng(1)); }), "batches: need a tensor"));
}
