// Chapter 7. Leak check: what a model can see, found out from outside.
//
// One input is moved, and every output is compared bit for bit with what it was: an output that moved has seen that
// input, whatever the code says about masks. Done for every input of a batch this gives a matrix, inputs by outputs:
//   causal        output t may be moved by inputs 0 to t of its own row, and by nothing later
//   padding       no output is moved by padding, that at the padded position itself apart
//   batch rows    no output is moved by another row
// An output that moved against this is a leak. Gradient checks cannot find one: a mask that is one too wide has right
// derivatives, and training only looks too good to be true. An output that nothing moves is a failure too, since there
// nothing was checked. Shapes: input i32 [B, S] (token ids) or floating [B, S, D], output [B, T, ...].
// Serves: autograd/check/proof.h
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery::nn {

/// A row of the batch, and a position in it.
struct Place {
  i64 row = 0, position = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// True where `output` may be moved by `input`.
using MayMove = std::function<bool(Place input, Place output)>;

/// Within one sequence: only its own row; with `causal`, only from itself and from before; only inputs that are no
/// padding, its own position apart, which the residual connections carry on. `lengths` i32 [B]; not defined: no
/// padding.
MayMove within_sequence(bool causal, const Tensor& lengths = {});
/// From one sequence to another: only its own row, and only inputs that are no padding.
MayMove across_sequences(const Tensor& lengths = {});

/// What is checked.
struct LeakCheck {
  std::string name;           ///< "decoder"
  std::string inputs = "x";   ///< what is moved: "source"
  std::string outputs = "y";  ///< what is watched: "logits"
  Tensor input;
  /// Must depend on `input` alone: masks and lengths stay those of the original input, and there are no random numbers.
  std::function<Tensor(const Tensor& input)> output;
  MayMove may_move;
  i64 vocabulary = 0;  ///< for token ids: how many there are, at least 2
  /// The positions that are moved, in every row; none given: all. For sequences too long to move each.
  std::vector<i64> positions{};
  /// For a model that ought to use everything it may see: a pair that may touch and does not is a failure too. (A self-
  /// attention that is dead shows in nothing else, since the residual connection still moves the position itself.)
  bool all_must_move = false;
};

/// An input that moved an output it must not reach.
struct Leak {
  Place input, output;
};

/// Which inputs moved which outputs.
struct LeakReport {
  std::string name, inputs, outputs;
  i64 B = 0, S = 0, T = 0;
  std::vector<i64> positions{};   ///< of the inputs: those that were moved
  std::vector<bool> moved{};      ///< [B, T, B, S]: output row and position, then input row and position
  std::vector<bool> forbidden{};  ///< the same, true where it must not
  std::vector<Leak> leaks{};      ///< every moved and forbidden pair, by output, then by input
  std::vector<Place> unmoved{};   ///< outputs that some input may move, and none does: nothing was checked there
  std::vector<Leak> idle{};       ///< pairs that may touch, must, and do not; only with `all_must_move`

  bool ok() const { return leaks.empty() && unmoved.empty() && idle.empty(); }
  /// One line: what was found, the first leak with its pair of positions; says "no leak" when ok.
  std::string message() const;
};

/// Moves every input in turn: a token id to two other ids, a vector to other numbers of size 1.
/// Errors: an input of another rank or dtype, or that has nothing to move; a position that it has not; an output that
/// changes its shape or does not have the batch's rows.
LeakReport leakcheck(const LeakCheck& check);

/// The matrix, rows of outputs down and inputs across: '#' moved, '.' not moved and must not, '-' not moved though it
/// may, 'X' leak. Of long sequences only their lengths. Ends with the message.
std::ostream& operator<<(std::ostream& out, const LeakReport& report);

}  // namespace orrery::nn
