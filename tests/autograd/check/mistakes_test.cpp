// Chapter 3. Tests of the mistakes: what is recorded of a contribution, and what each change makes of it.
#include "autograd/check/mistakes.h"

#include <doctest/doctest.h>

#include <map>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::elements;

TEST_CASE("each change does what its name says") {
  const Tensor g = Tensor::of<double>({2, 2}, {1, 2, 3, 4}), so_far = full({2, 2}, 10.0, f64);
  const std::map<std::string, std::vector<double>> expected{
      {"x 0", {0, 0, 0, 0}},        {"x -1", {-1, -2, -3, -4}},
      {"x 2", {2, 4, 6, 8}},        {"x 1.0001", {1.0001, 2 * 1.0001, 3 * 1.0001, 4 * 1.0001}},
      {"transposed", {1, 3, 2, 4}}, {"overwriting", {-9, -8, -7, -6}}};
  size_t tried = 0;
  for (const Change& change : all_changes()) {
    CAPTURE(change.name);
    const auto found = expected.find(change.name);
    const bool is_listed = found != expected.end(), drops = change.name == "dropped";
    tried += is_listed || drops;
    if (is_listed) CHECK(elements(change.apply(g, so_far)) == found->second);
    if (drops) CHECK_FALSE(change.apply(g, so_far).defined());
    if (change.name == "overwriting") CHECK_FALSE(change.possible(g, {}));
  }
  CHECK(tried == 7);  // the eighth, of late rows, is below
  CHECK(all_changes().size() == 8);
  const Change late = all_changes().back();
  const Tensor rows = full({8194, 2}, 1.0, f64);
  CHECK_FALSE(late.possible(g, {}));
  CHECK(late.possible(rows, {}));
  CHECK(sum(late.apply(rows, {})).item() == 2 * 8194 + 4);
}

TEST_CASE("a recorder lists contributions, and the leaves declared zero that they lead to") {
  const Tensor x = Tensor::of<double>({2, 1}, {1, 2});
  const Checkable f = checkable([](const Variable& a, const Variable& b) { return exp(a) + softmax(b); }, {x, x}, {},
                                {{"input 1", "one element"}});
  const std::vector<Change> changes = all_changes();
  Recorder recorder(f, changes);
  {
    const ObserverScope scope(recorder);
    backward(sum(f.output()));
  }
  int declared = 0;
  for (const Contribution& c : recorder.contributions) declared += c.declared_zero == "one element";
  CHECK(declared == 2);  // of add to softmax, of softmax to input 1
  CHECK(recorder.contributions.size() == 5);
}
