// Chapter 5. Dropout: what is dropped, the mean, and which masks a pass draws.
#include "nn/layers/dropout.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;
using nn::Pass;

namespace {

Tensor drop(const nn::Dropout& layer, Pass pass) { return layer(constant(full({100, 100}, 1.0)), pass).value(); }

}  // namespace

TEST_CASE("a fraction p is dropped and the mean stays") {
  const Tensor y = drop(nn::Dropout(0.3), Pass::training(1, 1));
  i64 dropped = 0;
  for (i64 i = 0; i < y.count(); ++i) dropped += y.at(i) == 0 ? 1 : 0;
  CHECK(static_cast<double>(dropped) == doctest::Approx(3000).epsilon(0.05));
  CHECK(sum(y).item() == doctest::Approx(10000).epsilon(0.03));
}

TEST_CASE("equal passes draw equal masks; seed, step, micro-batch and draw each change them") {
  const nn::Dropout layer(0.5);
  const Tensor y = drop(layer, Pass::training(1, 1));
  CHECK(same_bits(y, drop(layer, Pass::training(1, 1))));
  CHECK_FALSE(same_bits(y, drop(layer, Pass::training(2, 1))));
  CHECK_FALSE(same_bits(y, drop(layer, Pass::training(1, 2))));
  CHECK_FALSE(same_bits(y, drop(layer, Pass::training(1, 1, 1))));
  Pass later = Pass::training(1, 1);
  later.next_draw();
  CHECK_FALSE(same_bits(y, drop(layer, later)));
}

TEST_CASE("outside training, or with p = 0, x comes back as it is and no mask is drawn") {
  const Variable x = constant(full({2, 2}, 1.0));
  Pass inference = Pass::inference(), training = Pass::training(1, 1);
  CHECK(nn::Dropout(0.5)(x, inference).value().shares_memory_with(x.value()));
  CHECK(nn::Dropout(0)(x, training).value().shares_memory_with(x.value()));
  CHECK(training.draws == 0);
  nn::Dropout(0.5)(x, training);
  CHECK(training.draws == 1);
}

TEST_CASE("a probability outside [0, 1) is an error") {
  CHECK_THROWS_WITH(nn::Dropout(1.0), "dropout: the probability must be in [0, 1), not 1");
  CHECK_THROWS_AS(nn::Dropout(-0.1), Error);
}

TEST_CASE("the probability in force is 0 outside training") {
  CHECK(nn::Dropout(0.3).active(Pass::training(1, 1)) == 0.3);
  CHECK(nn::Dropout(0.3).active(Pass::inference()) == 0);
}
