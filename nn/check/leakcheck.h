// Chapter 7. Leak check: tests which inputs a model's outputs depend on, without looking at its code.
//
// One input is changed ("moved"), and every output is compared with its old value, bit for bit. An output that changes
// depends on that input, whatever the code says about masks. Doing this for every input of a batch gives a matrix of
// inputs and outputs:
//   causal        output t may be moved by inputs 0 to t of its own row, and by nothing later
//   padding       a padded input moves no output except that at its own position
//   batch rows    no output is moved by another row
// An output that moves although it must not is a leak. Gradient checks cannot find leaks: a mask that is one too wide
// has correct derivatives, and the training only looks too good to be true. An output that no input moves is a failure
// as well, because nothing was checked there. Shapes: input i32 [B, S] (token ids) or floating [B, S, D], output
// [B, T, ...].
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

/// Within one sequence: an output may be moved by inputs of its own row, with `causal` only at its own or earlier
/// positions, and never by padding except at its own position (the residual connection). `lengths` is i32 [B]; if it is
/// not defined, there is no padding.
MayMove within_sequence(bool causal, const Tensor& lengths = {});
/// From one sequence to another: an output may be moved by inputs of its own row that are not padding.
MayMove across_sequences(const Tensor& lengths = {});

/// What is checked.
struct LeakCheck {
  std::string name;           ///< "decoder"
  std::string inputs = "x";   ///< the name of what is moved, such as "source"
  std::string outputs = "y";  ///< the name of what is compared, such as "logits"
  Tensor input;
  /// Must depend on `input` only: it uses the masks and lengths of the original input, and no random numbers.
  std::function<Tensor(const Tensor& input)> output;
  MayMove may_move;
  i64 vocabulary = 0;  ///< for token ids: how many there are, at least 2
  /// The positions to move in every row; empty means all of them. For sequences too long to move every position.
  std::vector<i64> positions{};
  /// For a model that should use everything it may see: an input that may move an output but does not is a failure too.
  /// (Otherwise a self-attention without effect would pass, since the residual connection still moves each position.)
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
  std::vector<i64> positions{};   ///< the input positions that were moved
  std::vector<bool> moved{};      ///< [B, T, B, S]: output row and position, then input row and position
  std::vector<bool> forbidden{};  ///< in the same order: true where the input must not move the output
  std::vector<Leak> leaks{};      ///< every pair that moved although forbidden, ordered by output, then by input
  std::vector<Place> unmoved{};   ///< outputs that some input may move, but none does: nothing was checked there
  std::vector<Leak> idle{};       ///< with `all_must_move`: pairs that may move, but do not

  bool ok() const { return leaks.empty() && unmoved.empty() && idle.empty(); }
  /// One line: the first leak with its two positions; else an output that nothing moves; else an idle pair; else "no
  /// leak".
  std::string message() const;
};

/// Moves every input in turn: replaces a token id by two other ids (by the only other one, if there are two), and a
/// vector by two others, drawn from N(0, 1). Errors: an input that is empty or has another rank or dtype; a position
/// outside the input; an output that changes its shape, has no positions, or does not have one row for each row of the
/// batch.
LeakReport leakcheck(const LeakCheck& check);

/// Prints the matrix, with one row for each output and one column for each input: '#' moved, '.' not moved and
/// forbidden, '-' not moved but allowed, 'X' leak, ' ' not tried (`positions`). For long sequences it prints only their
/// lengths. Ends with the message.
std::ostream& operator<<(std::ostream& out, const LeakReport& report);

}  // namespace orrery::nn
