// Chapter 0. The toy tasks: sequences of symbols, and the answers that the model must learn.
//
//   reverse   b a d c  ->  c d a b        copy   b a d c  ->  b a d c        sort   b a d c  ->  a b c d
// Whether a sequence is held out depends on its content: those whose hash is a multiple of 8 are never trained on. So
// the final exam shows that the model has learned the rule instead of memorising sequences.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_ops.h"

namespace orrery {

/// Symbols as token ids.
using Sequence = std::vector<i32>;

/// A task, and how its tokens are numbered.
struct ToyTask {
  std::string name = "reverse";  ///< reverse, copy or sort
  i64 symbols = 13;              ///< different symbols
  i64 min_length = 8, max_length = 16;
  i32 pad = 0, begin = 1, end = 2;  ///< special tokens; end = -1: answers have a known length and no end mark
  i32 first_symbol = 3;             ///< the symbols are first_symbol, first_symbol + 1, ...
  bool begin_is_symbol = false;     ///< every sequence starts with `begin`, as the Annotated Transformer has it

  i64 vocab_size() const { return first_symbol + symbols; }
  /// Tokens of the longest source and of the longest target, special ones included.
  i64 source_length() const { return max_length; }
  i64 target_length() const {
    if (begin_is_symbol) return max_length;
    return max_length + (end < 0 ? 1 : 2);  // `begin`, and `end` if there is one
  }

  /// Whether symbols are written as letters; otherwise as their numbers.
  bool as_letters() const { return symbols <= 26 && !begin_is_symbol; }
  /// The correct answer to `source`.
  Sequence answer(const Sequence& source) const;
  /// The answer with the begin and end marks, if the task has them. The decoder reads all of it but the last token, and
  /// learns to predict all but the first.
  Sequence target(const Sequence& source) const;
  /// A random sequence, held out or not as asked. Error: 9,999 random sequences are all of the other kind.
  Sequence draw(Rng& rng, bool held_out) const;

  /// "a b c", or numbers if symbols are not written as letters. Tokens that are not symbols are left out.
  std::string text(const Sequence& tokens) const;
  /// What a user may type: symbols such as "a to m" or "3 to 40", and lengths such as "8 to 16".
  std::string alphabet() const;
  std::string lengths() const;
  /// The sequence that a user typed; letters may stand without blanks between them. Errors name what is not allowed, a
  /// symbol or the length, and what is.
  Sequence parse(const std::string& line) const;
};

/// True for one sequence in eight, by content.
bool is_held_out(const Sequence& source);

/// Sequences of at most `length` tokens as one tensor i32 [B, length], filled up with `pad`. Error: one is longer.
Tensor batch_of(const std::vector<Sequence>& sequences, i64 length, i32 pad);

/// The answer in row `row` of the tokens [B, T] that greedy decoding wrote: up to the end mark, or the whole row if the
/// task has none. If `begin` is a symbol, it is put in front, since the decoder reads it and does not write it.
Sequence written(const Tensor& tokens, i64 row, const ToyTask& task);

/// The task as JSON, for a saved model's metadata, and back. Errors: text that does not describe a task.
std::string to_json(const ToyTask& task);
ToyTask toy_task(const std::string& json);

}  // namespace orrery
