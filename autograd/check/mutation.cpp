// Chapter 3. Mutants: what each mistake changes, and whether the checker notices.
#include "autograd/check/mutation.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "autograd/check/faulty_engine.h"
#include "autograd/check/mistakes.h"
#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"

namespace orrery {
namespace {

using Fate = Mutant::Fate;

class Judge {
 public:
  Judge(Checkable f, const GradcheckOptions& options, NumericSlopes slopes = {})
      : f_(std::move(f)),
        options_(options),
        cotangent_(cotangent_of(f_.output().shape(), options.seed)),
        slopes_(std::move(slopes)) {}

  MutationReport run() {
    const GradcheckReport unchanged = gradcheck(f_, options_, &slopes_);
    check(unchanged.ok, "mutate", "the backward is wrong before anything is changed: ", unchanged.message);
    Recorder recorder(f_, changes_);
    {
      const ObserverScope scope(recorder);
      right_ = gradients_of(f_, cotangent_);
    }
    for (size_t target = 0; target < recorder.contributions.size(); ++target) {
      const Contribution& contribution = recorder.contributions[target];
      for (size_t i = 0; i < changes_.size(); ++i) {
        if (contribution.possible[i]) try_change(contribution, static_cast<i64>(target), changes_[i]);
      }
    }
    try_engine(recorder);
    return std::move(report_);
  }

 private:
  void try_change(const Contribution& contribution, i64 target, const Change& change);
  void try_engine(const Recorder& recorder);
  void try_rule(EngineRule rule, const std::string& change);
  bool changes_nothing(const Checkable& f) const { return alike(f, 2 * options_.atol, 2 * options_.rtol); }
  bool alike(const Checkable& f, double atol, double rtol) const;
  GradientCheck caught_by(const Checkable& f);
  void ask_checker(Mutant& mutant, const Checkable& f);
  void judge_engine(const std::string& change, const Checkable& f, bool no_difference);
  bool reaches_nothing(const Change& change, i64 target) const;
  std::string reason(const Contribution& contribution, const Change& change, i64 target) const;

  const Checkable f_;
  const GradcheckOptions options_;
  const std::vector<Change> changes_ = all_changes();
  const Tensor cotangent_;
  std::vector<Tensor> right_;
  NumericSlopes slopes_;
  MutationReport report_;
};

// True when no coordinate g of f's gradients changes by more than atol + rtol |g|.
bool Judge::alike(const Checkable& f, double atol, double rtol) const {
  try {
    const std::vector<Tensor> changed = gradients_of(f, cotangent_);
    for (size_t leaf = 0; leaf < right_.size(); ++leaf) {
      if (right_[leaf].shape() != changed[leaf].shape()) return false;
      for (i64 i = 0; i < right_[leaf].count(); ++i) {
        const double g = right_[leaf].at(i);
        if (!(std::fabs(changed[leaf].at(i) - g) <= atol + rtol * std::fabs(g))) return false;
      }
    }
    return true;
  } catch (const std::exception&) { return false; }
}

// Which check rejects f's backward; `none` if all of them pass.
GradientCheck Judge::caught_by(const Checkable& f) {
  try {
    return gradcheck(f, options_, &slopes_).failed_check();
  } catch (const std::exception&) { return GradientCheck::error; }
}

// True if even 2^40 times the difference that the change makes leaves every gradient as it is.
bool Judge::reaches_nothing(const Change& change, i64 target) const {
  const auto far_more = [&](const Tensor& g, const Tensor& so_far) {
    const Tensor wrong = change.apply(g, so_far);
    return wrong.defined() ? g + (wrong - g) * 0x1p40 : g * -0x1p40;
  };
  const Change larger{change.name, change.possible, far_more};
  ChangeOne mistake(larger, target);
  const ObserverScope scope(mistake);
  return alike(f_, 0, 0);
}

// Why a change that no gradient shows is not a mistake; "" if nothing explains it, so that it may merely be too small.
std::string Judge::reason(const Contribution& contribution, const Change& change, i64 target) const {
  if (contribution.empty) return "size 0";
  if (!contribution.declared_zero.empty()) return "declared zero: " + contribution.declared_zero;
  if (contribution.zero) return "this gradient is zero";
  if (change.name == "transposed" && contribution.symmetric) return "equal to its transpose";
  return reaches_nothing(change, target) ? "on its way to the inputs it is multiplied by zero" : "";
}

void Judge::try_change(const Contribution& contribution, i64 target, const Change& change) {
  Mutant mutant{contribution.operation, target, contribution.input, change.name};
  ChangeOne mistake(change, target);
  const ObserverScope scope(mistake);
  if (changes_nothing(f_)) {
    mutant.why_not = reason(contribution, change, target);
    if (mutant.why_not.empty())
      mutant.why_not = "the gradients change by less than the checker tolerates";
    else
      mutant.fate = Fate::equivalent;
  } else {
    mistake.reset();
    ask_checker(mutant, f_);
  }
  report_.mutants.push_back(std::move(mutant));
}

void Judge::ask_checker(Mutant& mutant, const Checkable& f) {
  mutant.caught_by = caught_by(f);
  if (mutant.caught_by == GradientCheck::none)
    mutant.why_not = "the check passes";
  else
    mutant.fate = Fate::caught;
}

void Judge::try_engine(const Recorder& recorder) {
  try_rule(EngineRule::unbroadcast, "no un-broadcast");
  if (recorder.accumulates) {
    OverwriteAll mistake;
    const ObserverScope scope(mistake);
    judge_engine("overwrites", f_, changes_nothing(f_));
  }
  try_rule(EngineRule::newest_first, "oldest first");
}

// If the rule has nothing to do, there is nothing to break.
void Judge::try_rule(EngineRule rule, const std::string& change) {
  Checkable f = f_;
  bool needed = false;
  f.engine = [rule, &needed](const Variable& y, const Tensor& dy) { backward_without(rule, y, dy, needed); };
  const bool no_difference = changes_nothing(f);
  if (needed) judge_engine(change, f, no_difference);
}

// A rule that has something to do may still make no difference: if two parameters wait, either may come first, and
// summing a shape of size 0 to another changes nothing.
void Judge::judge_engine(const std::string& change, const Checkable& f, bool no_difference) {
  Mutant mutant{"engine", -1, -1, change};
  if (no_difference) {
    mutant.fate = Fate::equivalent;
    mutant.why_not = "the rule makes no difference here";
  } else {
    ask_checker(mutant, f);
  }
  report_.mutants.push_back(std::move(mutant));
}

}  // namespace

i64 MutationReport::count(Mutant::Fate fate) const {
  return std::count_if(mutants.begin(), mutants.end(), [&](const Mutant& mutant) { return mutant.fate == fate; });
}

MutationReport mutate(Checkable f, const GradcheckOptions& options) { return Judge(std::move(f), options).run(); }

MutationReport mutate(const Sample& sample, u64 seed) {
  const parts::KeepThreads keep;
  set_threads(1);  // fastest for tiny tensors; no result depends on it
  NumericSlopes slopes;
  GradcheckOptions options = sample.options;
  options.seed = gradcheck(sample, seed, &slopes).seed;
  return Judge(sample.build(f64, options.seed), options, std::move(slopes)).run();
}

std::vector<Tensor> gradients_of(const Checkable& f, const Tensor& dy) {
  Parameters leaves = f.leaves;
  const Variable y = f.output();
  try {
    f.walk(y, dy);
  } catch (...) {
    for (NamedParameter& leaf : leaves) leaf.value.clear_gradient();
    throw;
  }
  return parts::take_gradients(leaves);
}

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) {
  out << mutant.change;
  if (mutant.input >= 0) return out << ": input " << mutant.input << " of " << mutant.operation;
  return mutant.operation == "engine" ? out : out << ": " << mutant.operation;
}

std::ostream& operator<<(std::ostream& out, const MutationReport& report) {
  const i64 equivalent = report.count(Fate::equivalent);
  out << report.mutants.size() - static_cast<size_t>(equivalent) << " mutants, " << report.count(Fate::caught)
      << " caught";
  for (const Mutant& mutant : report.mutants)
    if (mutant.fate == Fate::survived) out << "\n  survived: " << mutant << " (" << mutant.why() << ')';
  return out;
}

}  // namespace orrery
