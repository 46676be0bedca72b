// Chapter 3. Mutants: an observer that changes one contribution or breaks one rule, and the judge of what that does.
//
// Read next: autograd/proof.h
#include "autograd/mutation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ostream>

#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

using Fate = Mutant::Fate;

// What stood in the slot before a contribution was added; not defined if it is the first.
const Tensor& gradient_so_far(const Node& node, size_t input) {
  const Edge& edge = node.inputs[input];
  return edge.node->outputs[static_cast<size_t>(edge.output)].gradient;
}

// The numbers of the transposed matrix in the shape of x: rows and columns mixed up.
Tensor turned(const Tensor& x) {
  std::vector<i64> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), i64{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order).reshape(x.shape());
}

bool can_be_turned(const Tensor& x) { return x.rank() >= 2 && x.size(-1) > 1 && x.size(-2) > 1 && x.count() > 0; }

bool is_symmetric(const Tensor& x) { return can_be_turned(x) && same_bits(x, turned(x)); }

bool is_zero(const Tensor& x) {
  for (i64 i = 0; i < x.count(); ++i)
    if (x.at(i) != 0) return false;
  return true;
}

// A mistake: its name, where it is possible, and what it makes of the contribution g.
struct Change {
  std::string name;
  std::function<bool(const Tensor& g, const Tensor& so_far)> possible;
  std::function<Tensor(const Tensor& g, const Tensor& so_far)> apply;
};

std::vector<Change> all_changes() {
  std::vector<Change> changes;
  const auto anywhere = [](const Tensor&, const Tensor&) { return true; };
  const auto factor = [&](const std::string& name, double value) {
    changes.push_back({name, anywhere, [value](const Tensor& g, const Tensor&) { return g * value; }});
  };
  factor("x 0", 0);
  factor("x -1", -1);
  factor("x 2", 2);
  factor("x 1.0001", 1.0001);
  changes.push_back({"dropped", anywhere, [](const Tensor&, const Tensor&) { return Tensor(); }});
  changes.push_back({"overwriting", [](const Tensor&, const Tensor& so_far) { return so_far.defined(); },
                     [](const Tensor& g, const Tensor& so_far) { return g - so_far; }});
  changes.push_back({"transposed", [](const Tensor& g, const Tensor&) { return can_be_turned(g); },
                     [](const Tensor& g, const Tensor&) { return turned(g); }});
  return changes;
}

// What is known of one contribution of the right backward pass.
struct Contribution {
  std::string operation;
  i64 input;
  bool empty, zero, symmetric;
  std::vector<bool> possible;  // for each change
};

// Lists the contributions of a backward pass, and whether the engine's rules had something to do.
class Recorder final : public Observer {
 public:
  explicit Recorder(const std::vector<Change>& changes) : changes_(changes) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    const Tensor& so_far = gradient_so_far(node, input);
    Contribution found{
        std::string(node.name), static_cast<i64>(input), g.count() == 0, is_zero(g), is_symmetric(g), {}};
    for (const Change& change : changes_) found.possible.push_back(change.possible(g, so_far));
    accumulates = accumulates || so_far.defined();
    contributions.push_back(std::move(found));
  }
  bool breaks(EngineRule rule) const override {
    (rule == EngineRule::unbroadcast ? unbroadcasts : chooses) = true;
    return false;
  }

  std::vector<Contribution> contributions;
  bool accumulates = false;
  mutable bool unbroadcasts = false, chooses = false;

 private:
  const std::vector<Change>& changes_;
};

// Applies a change to contribution number `target`.
class ChangeOne final : public Observer {
 public:
  ChangeOne(const Change& change, i64 target) : change_(change), target_(target) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    const Tensor& so_far = gradient_so_far(node, input);
    if (seen_++ == target_) g = change_.apply(g, so_far);
  }
  void reset() { seen_ = 0; }

 private:
  const Change& change_;
  const i64 target_;
  i64 seen_ = 0;
};

// An engine without one of its rules.
class BreakRule final : public Observer {
 public:
  explicit BreakRule(EngineRule rule) : rule_(rule) {}
  bool changes_contributions() const override { return true; }
  bool breaks(EngineRule rule) const override { return rule == rule_; }

 private:
  const EngineRule rule_;
};

// An engine that puts every contribution in the place of what was there.
class OverwriteAll final : public Observer {
 public:
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    const Tensor& so_far = gradient_so_far(node, input);
    if (so_far.defined()) g = g - so_far;
  }
};

class Judge {
 public:
  Judge(Checkable f, const GradcheckOptions& options) : f_(std::move(f)), options_(options) {
    Rng rng(options.seed);
    cotangent_ = randn(f_.output().shape(), rng, f64);  // the checker's own
  }

  MutationReport run() {
    const GradcheckReport unchanged = gradcheck(f_, options_, &slopes_);
    check(unchanged.ok, "mutate", "the backward is wrong before anything is changed: ", unchanged.message);
    Recorder recorder(changes_);
    {
      const ObserverScope scope(recorder);
      right_ = gradients_of(f_, cotangent_);
    }
    for (size_t target = 0; target < recorder.contributions.size(); ++target) {
      const Contribution& contribution = recorder.contributions[target];
      for (size_t i = 0; i < changes_.size(); ++i) {
        if (contribution.possible[i]) judge(contribution, static_cast<i64>(target), changes_[i]);
      }
    }
    judge_engine(recorder);
    return std::move(report_);
  }

 private:
  void judge(const Contribution& contribution, i64 target, const Change& change);
  void judge_engine(const Recorder& recorder);
  bool changes_nothing(Observer& mistake) const;
  std::string caught_by(Observer& mistake);
  std::string reason(const Contribution& contribution, const Change& change) const;

  const Checkable f_;
  const GradcheckOptions options_;
  const std::vector<Change> changes_ = all_changes();
  Tensor cotangent_;
  std::vector<Tensor> right_;
  NumericSlopes slopes_;
  MutationReport report_;
};

// True when no coordinate changes by more than twice what the checker tolerates.
bool alike(const std::vector<Tensor>& right, const std::vector<Tensor>& wrong, const GradcheckOptions& options) {
  for (size_t leaf = 0; leaf < right.size(); ++leaf) {
    if (right[leaf].shape() != wrong[leaf].shape()) return false;
    for (i64 i = 0; i < right[leaf].count(); ++i) {
      const double g = right[leaf].at(i);
      if (!(std::fabs(wrong[leaf].at(i) - g) <= 2 * (options.atol + options.rtol * std::fabs(g)))) return false;
    }
  }
  return true;
}

bool Judge::changes_nothing(Observer& mistake) const {
  const ObserverScope scope(mistake);
  try {
    return alike(right_, gradients_of(f_, cotangent_), options_);
  } catch (const Error&) { return false; }
}

// The check that rejects, "" if none does.
std::string Judge::caught_by(Observer& mistake) {
  const ObserverScope scope(mistake);
  try {
    return gradcheck(f_, options_, &slopes_).failed_check();
  } catch (const Error&) { return "error"; }
}

// Why a mistake that changes nothing is none; "" where there is no reason but that the checker looks too coarsely.
std::string Judge::reason(const Contribution& contribution, const Change& change) const {
  if (contribution.empty) return "size 0";
  std::string zeros;
  for (const DeclaredZero& zero : f_.zeros) {
    if (zeros.find(zero.reason) == zeros.npos) zeros += (zeros.empty() ? "declared zero: " : "; ") + zero.reason;
  }
  if (!zeros.empty()) return zeros;
  if (contribution.zero) return "this gradient is zero";
  return change.name == "transposed" && contribution.symmetric ? "equal to its transpose" : "";
}

void Judge::judge(const Contribution& contribution, i64 target, const Change& change) {
  Mutant mutant{contribution.operation, target, contribution.input, change.name, Fate::survived, ""};
  ChangeOne mistake(change, target);
  if (changes_nothing(mistake)) {
    mutant.why = reason(contribution, change);
    if (mutant.why.empty())
      mutant.why = "the gradients change by less than the checker tolerates";
    else
      mutant.fate = Fate::equivalent;
  } else {
    mistake.reset();
    mutant.why = caught_by(mistake);
    if (mutant.why.empty())
      mutant.why = "the check passes";
    else
      mutant.fate = Fate::caught;
  }
  report_.mutants.push_back(std::move(mutant));
}

// Where a rule has nothing to do, or makes no difference (two parameters wait, and either may come first), there is
// nothing to break.
void Judge::judge_engine(const Recorder& recorder) {
  const auto judge = [&](const std::string& change, bool possible, Observer&& mistake) {
    if (!possible || changes_nothing(mistake)) return;
    const std::string why = caught_by(mistake);
    report_.mutants.push_back({"engine", -1, -1, change, why.empty() ? Fate::survived : Fate::caught, why});
  };
  judge("no un-broadcast", recorder.unbroadcasts, BreakRule(EngineRule::unbroadcast));
  judge("overwrites", recorder.accumulates, OverwriteAll());
  judge("oldest first", recorder.chooses, BreakRule(EngineRule::newest_first));
}

}  // namespace

i64 MutationReport::count(Mutant::Fate fate) const {
  return std::count_if(mutants.begin(), mutants.end(), [&](const Mutant& mutant) { return mutant.fate == fate; });
}

MutationReport mutate(Checkable f, const GradcheckOptions& options) { return Judge(std::move(f), options).run(); }

std::vector<Tensor> gradients_of(const Checkable& f, const Tensor& dy) {
  std::vector<Tensor> result;
  const Variable y = f.output();
  try {
    if (y.wants_gradient()) backward(y, dy);
  } catch (const Error&) {
    for (NamedParameter leaf : f.leaves) leaf.value.clear_gradient();
    throw;
  }
  for (NamedParameter leaf : f.leaves) {
    const Tensor& g = leaf.value.gradient();
    result.push_back(g.defined() ? g : zeros(leaf.value.shape(), leaf.value.dtype()));
    leaf.value.clear_gradient();
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) {
  out << mutant.change;
  if (mutant.input >= 0) out << ": input " << mutant.input << " of " << mutant.operation;
  return out;
}

std::ostream& operator<<(std::ostream& out, const MutationReport& report) {
  const i64 equivalent = report.count(Fate::equivalent);
  out << report.mutants.size() - static_cast<size_t>(equivalent) << " mutants, " << report.count(Fate::caught)
      << " caught";
  for (const Mutant& mutant : report.mutants)
    if (mutant.fate == Fate::survived) out << "\n  survived: " << mutant << " (" << mutant.why << ')';
  return out;
}

}  // namespace orrery
