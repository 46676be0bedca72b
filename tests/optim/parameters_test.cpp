// Chapter 5. Tests of parameter groups: what becomes of models' parameters, bare Variables and tied parameters; and of
// schedules, whose values are PyTorch's (tests/torch/optim_test.cpp).
#include "optim/parameters.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/tensor_ops.h"
#include "optim/schedule.h"
#include "tests/core/support.h"

using namespace orrery;
using small::error_of;
using namespace orrery::optim;
using doctest::Approx;

namespace {
const Shape row{2}, matrix{2, 2};
}

TEST_CASE("decay_matrices keeps weight decay from what has one axis") {
  const Variable weight = parameter(zeros(matrix)), bias = parameter(zeros(row));
  const auto groups = optim::decay_matrices({{"weight", weight}, {"bias", bias}}, 0.1).groups();
  REQUIRE(groups.size() == 2);
  REQUIRE(groups[0].parameters.size() == 1);
  REQUIRE(groups[1].parameters.size() == 1);
  CHECK(groups[0].parameters[0].name == "weight");
  CHECK(groups[0].weight_decay == 0.1);
  CHECK(groups[1].parameters[0].name == "bias");
  CHECK(groups[1].weight_decay == 0.0);
}

TEST_CASE("a tied parameter is kept under its first name; equal values alone do not tie") {
  const Variable shared = parameter(zeros(row)), other = parameter(shared.value());
  const Parameters each = optim::without_repeats({{"a", shared}, {"b", other}, {"c", shared}});
  REQUIRE(each.size() == 2);
  CHECK(each[0].name == "a");
  CHECK(each[1].name == "b");
}

TEST_CASE("what collects no gradient is not a parameter") {
  CHECK(error_of([] {
          optim::without_repeats({{"x", constant(zeros(row))}});
        }) == "optim: x is not a parameter: it collects no gradient");
  CHECK(error_of([] {
          optim::without_repeats({{"x", Variable()}});
        }) == "optim: x is not a parameter: it collects no gradient");
}

TEST_CASE("tensors are cut into pieces by their sizes alone, in order, each element once") {
  const i64 grain = optim::piece_size;
  const std::vector<i64> sizes{5, 0, grain, grain + 1, 3 * grain, 1};
  const std::vector<optim::Piece> pieces = optim::pieces_of(sizes);
  std::vector<i64> covered(sizes.size());
  for (const optim::Piece& piece : pieces) {
    CHECK(piece.begin == covered.at(piece.owner));
    CHECK(piece.end > piece.begin);
    CHECK(piece.end - piece.begin <= grain);
    covered[piece.owner] = piece.end;
  }
  CHECK(covered == sizes);
  CHECK(pieces.size() == 1 + 0 + 1 + 2 + 3 + 1);
  CHECK(std::is_sorted(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.owner < b.owner; }));
  CHECK(optim::pieces_of({}).empty());
}

TEST_CASE("schedules reach their peaks and floors, and stay there") {
  CHECK(noam(4000, 512, 4000) == Approx(6.987712429686843e-4).epsilon(1e-12));  // equation 3 of the paper
  CHECK(inverse_sqrt(1, 8e-4, 4) == Approx(2e-4).epsilon(1e-12));
  CHECK(warmup_cosine(10, 1.0, 10, 110, 0.1) == 1.0);
  CHECK(warmup_cosine(500, 1.0, 10, 110, 0.1) == Approx(0.1).epsilon(1e-12));
  CHECK(linear_cooldown(6, 10, 6) == 1);
  CHECK(linear_cooldown(100, 10, 6) == 0);
  CHECK(linear_cooldown(10, 10, 10) == 1);
  CHECK(linear_cooldown(1, 4, 0) == Approx(0.8).epsilon(1e-12));
}

TEST_CASE("steps and lengths out of range are errors that name the schedule") {
  CHECK(error_of([] { constant(0, 1); }) == "constant: steps are counted from 1, got 0");
  CHECK(error_of([] { noam(0, 512, 4000); }) == "noam: steps are counted from 1, got 0");
  CHECK(error_of([] { noam(1, 512, 0); }) == "noam: warmup must be at least 1, got 0");
  CHECK(error_of([] { noam(1, 0, 1); }) == "noam: d_model must be positive, got 0");
  CHECK(error_of([] { inverse_sqrt(0, 1, 1); }) == "inverse_sqrt: steps are counted from 1, got 0");
  CHECK(error_of([] { inverse_sqrt(1, 1, 0); }) == "inverse_sqrt: warmup must be at least 1, got 0");
  CHECK(error_of([] { warmup_cosine(-1, 1, 1, 2); }) == "warmup_cosine: steps are counted from 1, got -1");
  CHECK(error_of([] { warmup_cosine(1, 1, 5, 5); }) == "warmup_cosine: total (5) must be larger than warmup (5)");
  CHECK(error_of([] { linear_cooldown(0, 2, 1); }) == "linear_cooldown: steps are counted from 1, got 0");
  CHECK(error_of([] { linear_cooldown(1, 2, 3); }) == "linear_cooldown: from (3) must be in [0, total = 2]");
}
