// Chapter 3. The whole proof of a function, in one line: of an operation, a layer or a model, in the tree or in your
// program.
//
//   Proof proof = prove("softsign", [](const Variable& x) { return softsign(x); }, {{3, 4}});
//   std::cout << proof << '\n';
//   return proof ? 0 : 1;
// Agreeing with the numeric derivative is not enough. A proof has these parts:
//   gradients    every coordinate against the numeric derivative, in f64
//   mutants      each backward on the tape broken in many ways, one at a time: the check must notice
//                (autograd/check/mutation.h)
//   f32          each leaf's gradient differs from that of f64 by at most 1e-6 of its max |g|, and the output by at
//                most 1e-6 of max |y|, in each of four draws of numbers (one if a leaf is long); a larger difference
//                must look like rounding, and be no more than rounding can explain (autograd/check/rounding.h)
//   repeatable   64 fresh passes give equal bits (4 where a leaf is long), and none keeps a dy for ever
//   zero         dL/dy = 0 gives dL/dx = 0, exactly
//   threads      equal bits for 1 to 9, 12, 13 and 16 threads, every loop cut into chunks of one element
//                (core/machine/parallel.h), long ones into about 64 chunks; and in another thread than the first, the
//                whole pass or its backward alone. No pass sets the number of threads
//   far          the gradients again, with inputs 4 and 8 times as large, where the function is finite there; and f32
//                again, with differences of at most 4 times what rounding can explain (64 times with weights)
//   small        gradients and f32 again, with half of the numbers 0; and f32 with half of them 2^-66 times as large
//   linear       dL/dy as a loss gives it: 1 everywhere, the same everywhere, with zeros, below 1e-5, beyond 100; the
//                gradients are sums of those of random dL/dy
//   composed     behind computed inputs, 2 x, and with its output used up: nobody else holds what it saved. Also with
//                one tensor for all inputs of one shape
//   accumulates  a gradient that is there is added to: by a second pass, with a second use before or after, and not in
//                memory that others hold
//   subsets      each choice of the inputs that want a gradient (of more than 4: each alone, all but each) gives the
//                gradients that all together give
//   shared       dy, inputs and outputs stay as they are
//   interleaved  two forward passes with other numbers before the first backward, in both orders
//   changed      each input and each output on the tape changed in place after forward: an error, or the same bits
//   padding      NaN, infinity or huge numbers behind the padding lengths change no bit of a real row's output or of a
//                gradient, and get the gradient 0; only for functions whose sample says what is padding (`Padding`)
//   step         a step of each parameter of a layer, alone, along its gradient moves L as it must; it may stay only if
//                its gradient is declared zero
//   file         equal bits after saving and loading; only for what can be saved in a file
// What no proof can find: an error below the tolerance; in f32, one as small as the rounding of the largest numbers of
// the pass; a mistake beyond the numbers and shapes it is given, at a kink, with a number of threads it does not try,
// or less often than every 64th pass; one for a dL/dy, an input or a composition that is special in still another way,
// such as a single 1, an infinity, or f(x, 2 x); memory that is kept for ever, except for dy itself; a wrong forward,
// whose derivative is right; an operation that asks in forward which of its inputs want a gradient, and errs for some
// of them (for `subsets`, the tape is cut after forward); and whatever an operation does on purpose while it is proven
// only. For layers see nn/check/proof.h.
// Read next: apps/book/ch3/my_op.cpp
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
  std::string detail;   ///< a number, or what is wrong
  std::string guess{};  ///< which mistake that may be; mostly empty

  std::string text() const { return guess.empty() ? detail : detail + ": " + guess; }
};

struct Proof {
  std::string name, variant;
  GradcheckReport gradients;
  i64 redrawn = 0;  ///< draws that showed nothing, before the one that was checked (autograd/check/gradcheck.h)
  MutationReport mutants;
  double f32_error = 0;  ///< of the f32 gradients, the largest relative to its leaf's max |g|; 0 where all are equal
  std::vector<ProofPart> parts;
  double seconds = 0;

  /// No part failed. Also true for inputs of size 0, where `gradients.coordinates` is 0 and nothing was compared.
  explicit operator bool() const;
  /// The parts that failed, a line each; "" when none did.
  std::string message() const;
};
std::ostream& operator<<(std::ostream& out, const Proof& proof);

struct ProofOptions {
  bool mutants = true;  ///< without them, a proof takes much less time
  /// The parts that compare bits, or look for 0: repeatable, zero, threads, shared, changed, padding, file. No random
  /// number can make them fail for a right function, so a search for false alarms over many seeds leaves them out.
  bool exact = true;
  /// Of inputs, weights, dropout masks, dL/dy and the choice of coordinates. Better not 0: inputs and masks take
  /// multiples of it, and would then repeat the numbers of dL/dy.
  u64 seed = 1;
};

/// Proves `sample`. A part in which the function throws has failed, with the exception's text.
/// Changes the number of threads while it runs, and restores it.
Proof prove(const Sample& sample, const ProofOptions& options = {});

/// The sample of f(inputs...), where inputs of the given shapes are drawn from N(0, 1): one, two or three Variables, or
/// a std::vector<Variable>.
Sample sample_of(std::string name, const VariableFunction& f, std::vector<Shape> shapes,
                 std::vector<DeclaredZero> zeros = {});

/// Proves f(inputs...); for values from another range, or a function of more than its inputs, write the Sample
/// yourself.
Proof prove(std::string name, const VariableFunction& f, std::vector<Shape> shapes,
            std::vector<DeclaredZero> zeros = {}, const ProofOptions& options = {});

}  // namespace orrery
