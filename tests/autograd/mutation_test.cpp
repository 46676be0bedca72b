// Chapter 6. The table of proofs, turned round: with any one gradient made wrong on its way, the row must be rejected.
#include "autograd/observer.h"
#include "autograd/samples.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

namespace {

// Changes the n-th contribution of a backward pass: multiplied by `factor`, or dropped where factor is not a number.
class Mutation final : public Observer {
 public:
  Mutation(i64 target, double factor) : target_(target), factor_(factor) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node&, size_t, Tensor& g) override {
    if (seen++ != target_) return;
    g = std::isnan(factor_) ? Tensor() : g * factor_;
  }
  i64 seen = 0;

 private:
  i64 target_;
  double factor_;
};

std::vector<Tensor> gradients_under(Mutation mutation, Checkable& f, const Tensor& u) {
  const ObserverScope scope(mutation);
  return samples::gradients(f, u);
}

// True when some coordinate changes by more than twice what the checker tolerates.
bool differ(const std::vector<Tensor>& right, const std::vector<Tensor>& wrong, const GradcheckOptions& options) {
  for (size_t leaf = 0; leaf < right.size(); ++leaf) {
    for (i64 i = 0; i < right[leaf].count(); ++i) {
      const double g = right[leaf].at(i);
      if (std::fabs(wrong[leaf].at(i) - g) > 2 * (options.atol + options.rtol * std::fabs(g))) return true;
    }
  }
  return false;
}

struct Tally {
  i64 mutants = 0, rejected = 0;
};

// Every contribution of the sample's backward pass, changed in every way.
void mutate(const Sample& sample, Tally& tally) {
  Checkable f = sample.build(f64);
  Rng rng(sample.options.seed);
  const Tensor u = randn(f.output().shape(), rng, f64);  // the checker's own
  Mutation counter(-1, 1);
  std::vector<Tensor> right;
  {
    const ObserverScope scope(counter);
    right = samples::gradients(f, u);
  }
  for (i64 target = 0; target < counter.seen; ++target) {
    for (const double factor : {0.0, -1.0, 2.0, 1.0001, std::nan("")}) {
      ++tally.mutants;
      if (!differ(right, gradients_under({target, factor}, f, u), sample.options)) continue;  // zero by nature
      CAPTURE(target);
      CAPTURE(factor);
      Mutation mutation(target, factor);
      const ObserverScope scope(mutation);
      CHECK_FALSE(gradcheck(f, sample.options));
      ++tally.rejected;
    }
  }
}

}  // namespace

TEST_CASE("every operation: a contribution times 0, -1, 2 or 1.0001, or dropped, is rejected") {
  Tally tally;
  for (const Sample& sample : operation_samples()) {
    INFO(sample.name, ", ", sample.variant);
    const Tally before = tally;
    mutate(sample, tally);
    // Where nothing is declared zero and something is computed, some mutant must matter.
    const Checkable f = sample.build(f64);
    i64 elements = 0;
    for (const NamedParameter& leaf : f.leaves) elements += leaf.value.value().count();
    if (f.zeros.empty() && elements > 0) CHECK(tally.rejected > before.rejected);
  }
  MESSAGE(tally.rejected, " wrong backwards of ", tally.mutants, " rejected, the others change nothing");
  CHECK(tally.rejected > 500);
  CHECK(tally.rejected * 10 > tally.mutants * 8);
}
