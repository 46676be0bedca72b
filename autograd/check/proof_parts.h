// Chapter 3. The parts of a proof that go beyond one pass: gradients that exist already, shared memory, a choice of
// gradients, other passes in between.
//
// Each part builds the function anew from its sample, so that no part can disturb another, and tests it in f32 and in
// f64. The caller catches what the function throws. What each part shows: autograd/check/proof.h.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "autograd/check/proof.h"
#include "core/machine/parallel.h"

namespace orrery::parts {

/// Restores the number of threads when destroyed.
struct KeepThreads {
  const int before = threads();
  ~KeepThreads() { set_threads(before); }
};

/// A random dL/dy that f32 and f64 hold alike.
Tensor cotangent(const Shape& shape, Dtype dtype, u64 seed);

/// The name of the first leaf whose tensors differ in any bit; "the output" where one follows the leaves; "" if none.
std::string first_difference(const Parameters& leaves, const std::vector<Tensor>& a, const std::vector<Tensor>& b);

/// The gradients of all leaves, and the output.
std::vector<Tensor> one_pass(const Checkable& f, u64 seed);

/// A part that has failed if `problem` is not empty.
ProofPart part(std::string name, const std::string& problem, const std::string& detail = "");

/// The sample's function, with every leaf once.
Checkable built(const Sample& sample, Dtype dtype, u64 seed);

/// The number of elements of the largest leaf. From `long_tensor` elements on, a leaf is long.
i64 longest_leaf(const Checkable& f);
inline constexpr i64 long_tensor = 4096;

/// Equal up to the rounding of sums in another order, which is smaller than the mistakes that these parts look for.
bool alike(const Tensor& a, const Tensor& b);

/// Gradient-checks f, whatever its numbers are, and describes what is wrong; kinks and gradients that happen to be 0
/// are ignored.
std::string wrong_gradients(const Checkable& f, GradcheckOptions options);

/// backward, if y wants a gradient.
void run_backward(const Variable& y, const Tensor& dy);

/// Returns dL/d(leaf) for each leaf, zeros if there is none, and clears it.
std::vector<Tensor> take_gradients(Parameters& leaves);

/// Cuts the tape of y back to what it would be if only `leaves_to_keep` were parameters.
void keep_only(const Variable& y, const std::set<const Node*>& leaves_to_keep);

// autograd/check/proof_parts.cpp: gradients that exist already, a choice of gradients, shared memory.
ProofPart prove_accumulates(const Sample& sample, u64 seed);
ProofPart prove_subsets(const Sample& sample, u64 seed);
ProofPart prove_shared(const Sample& sample, u64 seed);

// autograd/check/proof_passes.cpp: other numbers, other passes in between, many of them, on any number of threads, and
// padding.
ProofPart prove_far(const Sample& sample, u64 seed);
ProofPart prove_interleaved(const Sample& sample, u64 seed);
ProofPart prove_changed(const Sample& sample, u64 seed);
ProofPart prove_repeatable(const Sample& sample, u64 seed);
ProofPart prove_threads(const Sample& sample, u64 seed);
/// The same for one thread and these `counts`, called `shown`.
ProofPart prove_thread_counts(const Sample& sample, u64 seed, std::span<const int> counts, const std::string& shown);
/// An empty part for a function without padding.
ProofPart prove_padding(const Sample& sample, u64 seed);

// autograd/check/proof_training.cpp: what a training meets. Empty where there are no parameters that could move.
ProofPart prove_linear(const Sample& sample, u64 seed);
ProofPart prove_composed(const Sample& sample, u64 seed);
ProofPart prove_small(const Sample& sample, u64 seed);
ProofPart prove_step(const Sample& sample, u64 seed);

}  // namespace orrery::parts
