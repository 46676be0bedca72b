// Chapter 5. Tests of parameter groups: what becomes of models' parameters, bare Variables and tied parameters.
#include "optim/parameters.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::error_of;

namespace {
const Shape row{2}, matrix{2, 2};
}

TEST_CASE("bare Variables keep their names or get a number") {
  const Variable named = parameter(zeros(row), "w"), nameless = parameter(zeros(row));
  for (const optim::ParameterGroups& groups :
       {optim::ParameterGroups({named, nameless}), optim::ParameterGroups(std::vector<Variable>{named, nameless})}) {
    REQUIRE(groups.groups().size() == 1);
    const optim::ParameterGroup& group = groups.groups()[0];
    REQUIRE(group.parameters.size() == 2);
    CHECK(group.parameters[0].name == "w");
    CHECK(group.parameters[1].name == "parameter 1");
    CHECK(group.parameters[1].value.node() == nameless.node());
    CHECK_FALSE(group.weight_decay.has_value());
    CHECK(group.learning_rate_factor == 1);
  }
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
