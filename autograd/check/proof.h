// Chapter 3. The whole proof of a function, in one line: of an operation, a layer or a model, in the tree or in your
// program.
//
//   Proof proof = prove("softsign", [](const Variable& x) { return softsign(x); }, {{3, 4}});
//   std::cout << proof << '\n';
//   return proof ? 0 : 1;
// A gradient that agrees with the slope is not all there is to a backward. A proof has these parts:
//   gradients    every coordinate against the numeric derivative, in f64
//   mutants      each backward on the tape broken in every way in turn: the check must notice (autograd/check/mutation.h)
//   f32          its gradients within 1e-6 of max |g| of those of f64 (1e-4 where that is 0 by declaration), its output
//                within 1e-6 of max |y|; if not, with other numbers, up to three times
//   repeatable   two fresh passes give equal bits
//   zero         dL/dy = 0 gives dL/dx = 0, exactly
//   threads      equal bits for 1, 2, 3 and 8 threads, every loop cut into chunks of one element (core/machine/parallel.h)
//   file         what it saves it loads, and gives the same bits then; only for what can be kept in a file
// For layers see nn/check/proof.h.
// Read next: apps/examples/ch3_my_op.cpp
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "core/tensor_ops.h"

namespace orrery {

/// One part of a proof.
struct ProofPart {
  std::string name;  ///< "f32", as above
  bool ok = false;
  std::string detail;  ///< a figure, or what is wrong
};

struct Proof {
  std::string name, variant;
  GradcheckReport gradients;
  MutationReport mutants;
  double f32_error = 0;  ///< of the f32 gradients, as a part of max |g|; 0 where every gradient is 0 in both
  std::vector<ProofPart> parts;
  double seconds = 0;

  explicit operator bool() const;
  /// The parts that failed, a line each; "" when none did.
  std::string message() const;
};
std::ostream& operator<<(std::ostream& out, const Proof& proof);

struct ProofOptions {
  bool mutants = true;  ///< a tenth of the time without
  u64 seed = 1;         ///< of inputs, weights, dropout masks, dL/dy and the choice of coordinates
};

/// Proves `sample`. A part in which the function throws has failed, with the exception's text.
/// Sets the number of threads while it runs, and sets it back.
Proof prove(const Sample& sample, const ProofOptions& options = {});

/// The sample of f(inputs...), where inputs of the given shapes are drawn from N(0, 1): one, two or three Variables, or
/// a std::vector<Variable>.
template <class F>
Sample sample_of(std::string name, F f, std::vector<Shape> shapes, std::vector<DeclaredZero> zeros = {}) {
  const auto build = [=](Dtype dtype, u64 seed) {
    Rng rng(7 * seed);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(randn(shape, rng, dtype));
    return checkable(f, inputs, {}, zeros);
  };
  return {std::move(name), "", build, {}};
}

/// Proves f(inputs...); for values from another range, or a function of more than its inputs, write the Sample
/// yourself.
template <class F>
Proof prove(std::string name, F f, std::vector<Shape> shapes, std::vector<DeclaredZero> zeros = {},
            const ProofOptions& options = {}) {
  return prove(sample_of(std::move(name), std::move(f), std::move(shapes), std::move(zeros)), options);
}

}  // namespace orrery
