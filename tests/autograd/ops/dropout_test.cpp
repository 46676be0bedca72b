// Chapter 5. Dropout: the decisions of random.h, the same in backward, the mean kept.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {
constexpr Draw draw{.seed = 9, .step = 3, .micro = 1, .index = 2};
}

TEST_CASE("dropout keeps what the decisions of the draw keep, forward and backward") {
  const double p = 0.3;
  for (const Dtype dtype : {f32, f64}) {
    const Variable x = parameter(full({3, 2, 13}, 2.0, dtype));
    const Variable y = dropout(x, p, draw);
    backward(y, full({3, 2, 13}, 1.0, dtype));
    i64 kept = 0;
    for (i64 row = 0; row < 6; ++row) {
      for (i64 column = 0; column < 13; ++column) {  // a row of 13 takes two blocks of 8 decisions
        const u16 decision = decisions(draw, static_cast<u64>(row * 2 + column / 8))[static_cast<size_t>(column % 8)];
        const double factor = decision < keep_below(p) ? keep_scale(p) : 0.0;
        kept += factor != 0;
        CHECK(close(y.value().at(row * 13 + column), 2 * factor, 1e-7));
        CHECK(close(x.gradient().at(row * 13 + column), factor, 1e-7));
      }
    }
    CHECK(kept > 40);
    CHECK(kept < 70);
  }
}

TEST_CASE("dropout keeps the mean, and another draw is another mask") {
  const Variable x = constant(full({400, 250}, 1.0));
  for (const double p : {0.1, 0.5, 0.9}) {
    const double deviation = std::sqrt(p / (1 - p) / 1e5);
    CHECK(std::fabs(mean(dropout(x, p, draw)).item() - 1) < 4 * deviation);
  }
  Draw next = draw;
  ++next.index;
  CHECK(same_bits(dropout(x, 0.5, draw).value(), dropout(x, 0.5, draw).value()));
  CHECK_FALSE(same_bits(dropout(x, 0.5, draw).value(), dropout(x, 0.5, next).value()));
}

TEST_CASE("probabilities 0 and 1, nothing, and errors") {
  const Tensor x = normal({5, 3});
  CHECK(same_bits(dropout(constant(x), 0, draw).value(), x));
  CHECK(same_bits(gradient_of_sum([](const Variable& v) { return dropout(v, 0, draw); }, x), full({5, 3}, 1.0, f64)));
  CHECK(sum_of_squares(dropout(constant(x), 1, draw).value()) == 0);  // 0 with the sign of x
  CHECK(same_bits(gradient_of_sum([](const Variable& v) { return dropout(v, 1, draw); }, x), zeros({5, 3}, f64)));
  CHECK(dropout(constant(zeros({0, 3})), 0.5, draw).shape() == Shape{0, 3});
  CHECK(contains(error_of([&] { (void)dropout(constant(x), 1.5, draw); }),
                 "dropout: needs a probability in [0, 1], got 1.5\n  input 0: [5, 3]  from a constant"));
  for (const double p : {0.0, 0.5})
    CHECK(error_of([&, p] { (void)dropout(Variable(), p, draw); }) ==
          "dropout: the tensor is not defined\n  input 0: (none)");
}

TEST_CASE("promise 16: dropout masks have the same bits for 1 to 8 threads") {
  const Variable x = constant(full({303, 117}, 1.0));
  Tensor expected;
  for (int count = 1; count <= 8; ++count) {
    const Threads scope(count);
    const Tensor mask = dropout(x, 0.2, draw).value();
    if (count == 1) expected = mask;
    CHECK(same_bits(mask, expected));
  }
  CHECK(thread_proof([](const auto& x) { return dropout(x[0], 0.2, draw); }, {{303, 117}}));
}
