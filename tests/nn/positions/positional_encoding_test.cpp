// Chapter 6. Positional encodings: exact values, odd sizes, learned tables, limits.
#include "nn/positions/positional_encoding.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;
using nn::Positions;

TEST_CASE("the table holds the paper's sines and cosines") {
  const Tensor table = nn::sinusoidal_table(50, 4);
  const auto at = [&](i64 position, i64 column) { return table.at(position * 4 + column); };
  CHECK(at(0, 0) == 0);
  CHECK(at(0, 1) == 1);
  CHECK(at(0, 3) == 1);
  CHECK(at(1, 0) == doctest::Approx(0.8414709848078965).epsilon(1e-15));    // sin 1
  CHECK(at(1, 1) == doctest::Approx(0.5403023058681398).epsilon(1e-15));    // cos 1
  CHECK(at(1, 2) == doctest::Approx(0.009999833334166664).epsilon(1e-14));  // sin 1/100
  CHECK(at(49, 2) == doctest::Approx(std::sin(0.49)).epsilon(1e-14));
  CHECK(at(49, 3) == doctest::Approx(std::cos(0.49)).epsilon(1e-14));
}

TEST_CASE("an odd d_model ends with a sine") {
  const Tensor table = nn::sinusoidal_table(3, 5);
  CHECK(table.at(5 + 4) == doctest::Approx(std::sin(1 / std::pow(10000.0, 4.0 / 5))).epsilon(1e-14));
  CHECK(nn::sinusoidal_table(2, 1).at(1) == doctest::Approx(std::sin(1.0)).epsilon(1e-15));
}

TEST_CASE("encodings are added to every row of the batch, from position 0 on") {
  Rng rng(1);
  for (const Positions kind : {Positions::sinusoidal, Positions::learned}) {
    nn::PositionalEncoding layer(kind, 6, 5, rng);
    to(layer, f64);
    const Tensor x = randn({2, 4, 5}, rng, f64), y = layer(constant(x)).value();
    const Tensor rows = kind == Positions::learned ? layer.weight.value().rows(0, 4) : nn::sinusoidal_table(4, 5);
    CHECK(distance(y, x + rows) == 0);
    CHECK(layer.parameter_count() == (kind == Positions::learned ? 30 : 0));
  }
}

TEST_CASE("positions beyond max_len are an error") {
  Rng rng(1);
  const nn::PositionalEncoding layer(Positions::sinusoidal, 6, 4, rng);
  CHECK_NOTHROW(layer(constant(zeros({1, 6, 4}))));
  CHECK_THROWS_WITH(layer(constant(zeros({1, 7, 4}))),
                    "positional_encoding: a sequence has 7 positions, but max_len is 6\n"
                    "  input 0: [1, 7, 4]  from a constant");
  CHECK_THROWS_AS(layer(constant(zeros({6, 4}))), Error);
}

TEST_CASE("first_rows: the rows that fused operations add") {
  Rng rng(1);
  const nn::PositionalEncoding fixed(Positions::sinusoidal, 6, 4, rng), learned(Positions::learned, 6, 4, rng);
  CHECK(same_bits(fixed.first_rows(3, f32).value(), nn::sinusoidal_table(3, 4).to(f32)));
  CHECK_FALSE(fixed.first_rows(3, f32).wants_gradient());
  CHECK(learned.first_rows(3, f32).node() == learned.weight.node());  // all of it: the caller takes its rows
  CHECK_THROWS_WITH(learned.first_rows(7, f32), "positional_encoding: a sequence has 7 positions, but max_len is 6");
}
