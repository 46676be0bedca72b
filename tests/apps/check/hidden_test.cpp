// Chapter 9. Tests of the mistakes that one pass does not show: each is caught, by the part of a proof that is for it.
#include "apps/check/table.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "autograd/check/samples.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE(
    "each hidden mistake says which part of a proof must catch it, and changes nothing where it has nothing to do") {
  const Checkable f = checkable([](const Variable& x) { return exp(x); }, {full({2}, 1.0, f64)});
  std::set<std::string> parts;
  for (const Hidden::Named& named : Hidden::kinds()) {
    const Hidden::Kind kind = named.kind;
    const std::string change = named.change;
    parts.insert(named.part);
    Hidden mistake(kind, "exp");
    const ObserverScope scope(mistake);
    CAPTURE(change);
    backward(f.output(), Tensor::of<double>({2}, {0.7, -1.3}));
    f.leaves[0].value.node()->outputs[0].gradient = Tensor();
    using enum Hidden::Kind;
    CHECK(mistake.changed_anything() == (kind == writes_dy || kind == sets_threads || kind == keeps_dy));
  }
  CHECK(parts.size() == 11);
}

TEST_CASE("promise 7: hidden mistakes in every operation are caught, but where they change nothing") {
  std::map<std::string, i64> caught;
  std::set<std::string> seen;
  for (const Sample& sample : operation_samples()) {
    // Long rows: the same operations have short ones. One row shows that an operation's mistakes are caught.
    if (sample.options.coordinates > 0 || !seen.insert(sample.name).second) continue;
    const MutationReport report = hidden_mutants(sample, sample.options.seed);
    CHECK_MESSAGE(report, sample.name << ", " << sample.variant << ": " << report);
    for (const Mutant& mutant : report.mutants) caught[mutant.change] += mutant.fate == Mutant::Fate::caught;
  }
  for (const Hidden::Named& hidden : Hidden::kinds()) CHECK_MESSAGE(caught[hidden.change] > 5, hidden.change);
}
