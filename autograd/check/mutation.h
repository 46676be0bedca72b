// Chapter 3. Can the proof fail? Breaks a backward in many ways, one at a time, and asks the gradient checker.
//
// A mutant is one sample with one mistake in its backward pass. Either one contribution, what one operation adds to the
// gradient of one input, is wrong: multiplied by 0, -1, 2 or 1.0001, doubled from row 8192 on, dropped, transposed (in
// the same shape), or written over the gradient so far. Or the engine lacks one of its rules. The checker must reject
// every mutant. A mutant that leaves every gradient unchanged is not a mistake, and is called equivalent, with the
// reason. The numeric side depends on the function alone, and is computed once for all mutants of a sample.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// One wrong backward, and what became of it.
struct Mutant {
  enum class Fate { caught, equivalent, survived };
  std::string operation;  ///< "layer_norm", or "engine"
  i64 contribution = 0;   ///< which one of the backward pass, counted from 0; -1 for the engine
  i64 input = 0;          ///< of the operation; -1 for the engine
  std::string change;     ///< "x -1", "dropped", "no un-broadcast"
  Fate fate = Fate::survived;
  GradientCheck caught_by = GradientCheck::none;
  std::string why_not{};  ///< why no check caught it; or what else did
  /// What caught it, by name, or why nothing did.
  std::string why() const { return caught_by == GradientCheck::none ? why_not : std::string(name_of(caught_by)); }
};
/// "x -1: input 0 of softmax"; "writes into dy: softmax" for a mistake in a whole operation (apps/check/table.h);
/// "oldest first" for the engine.
std::ostream& operator<<(std::ostream& out, const Mutant& mutant);

/// Every mutant of one sample.
struct MutationReport {
  std::vector<Mutant> mutants;
  i64 count(Mutant::Fate fate) const;
  /// Nothing survived.
  explicit operator bool() const { return count(Mutant::Fate::survived) == 0; }
};
/// "30 mutants, 30 caught", and the survivors by name.
std::ostream& operator<<(std::ostream& out, const MutationReport& report);

/// Makes and judges every mutant of f. Error: f's own backward does not pass the check.
MutationReport mutate(Checkable f, const GradcheckOptions& options = {});

/// Makes and judges these with the numbers that `gradcheck(sample, seed)` checks.
MutationReport mutate(const Sample& sample, u64 seed);

/// dL/d(leaf) for each leaf of f, given dL/dy; zeros if backward does not reach it. Clears these gradients afterwards.
std::vector<Tensor> gradients_of(const Checkable& f, const Tensor& dy);

}  // namespace orrery
