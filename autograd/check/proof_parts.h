// Chapter 3. The parts of a proof in which backward is not alone: what stands in a gradient already, who shares its
// memory, which gradients are asked for, what runs in between.
//
// Each part builds the function anew from its sample, so that no part can disturb another, and asks in f32 and in f64.
// A part in which the function throws is the caller's to catch. What each shows stands in autograd/check/proof.h.
// Serves: autograd/check/proof.h
#pragma once

#include <set>
#include <string>
#include <vector>

#include "autograd/check/proof.h"
#include "core/machine/parallel.h"

namespace orrery::parts {

/// The number of threads is afterwards what it was.
struct KeepThreads {
  const int before = threads();
  ~KeepThreads() { set_threads(before); }
};

/// A random dL/dy that f32 and f64 hold alike.
Tensor cotangent(const Shape& shape, Dtype dtype, u64 seed);

/// The largest magnitude; infinity where anything is not a number, which no comparison would find.
double largest(const std::vector<Tensor>& tensors);

/// The name of the first leaf whose tensors differ in any bit; "the output" where one follows the leaves; "" if none.
std::string first_difference(const Parameters& leaves, const std::vector<Tensor>& a, const std::vector<Tensor>& b);

/// The gradients of all leaves, and the output.
std::vector<Tensor> one_pass(const Checkable& f, u64 seed);

/// A part that failed where `problem` says something.
ProofPart part(std::string name, const std::string& problem, const std::string& detail = "");

/// The sample's function, with every leaf once.
Checkable built(const Sample& sample, Dtype dtype, u64 seed);

/// The elements of the largest leaf, and how many make it a long one.
i64 longest_leaf(const Checkable& f);
inline constexpr i64 long_tensor = 4096;

/// Equal but for the rounding of sums in another order. No mistake that these parts look for is as small.
bool alike(const Tensor& a, const Tensor& b);

/// backward, where y wants a gradient at all.
void run_backward(const Variable& y, const Tensor& dy);

/// dL/d(leaf) as it stands there, zeros where there is none; forgotten afterwards.
std::vector<Tensor> take_gradients(Parameters& leaves);

/// Cuts the tape behind y back to what it would be if no leaf but `leaves_to_keep` were a parameter.
void keep_only(const Variable& y, const std::set<const Node*>& leaves_to_keep);

// autograd/check/proof_parts.cpp: what stands in a gradient already, which are asked for, who shares their memory.
ProofPart prove_accumulates(const Sample& sample, u64 seed);
ProofPart prove_subsets(const Sample& sample, u64 seed);
ProofPart prove_shared(const Sample& sample, u64 seed);

// autograd/check/proof_passes.cpp: other numbers, other passes in between, many of them, and on any number of threads.
ProofPart prove_far(const Sample& sample, u64 seed);
ProofPart prove_interleaved(const Sample& sample, u64 seed);
ProofPart prove_changed(const Sample& sample, u64 seed);
ProofPart prove_repeatable(const Sample& sample, u64 seed);
ProofPart prove_threads(const Sample& sample, u64 seed);

}  // namespace orrery::parts
