// Chapter 9. What own.4 and own.6 reverse: eight letters from a to j. One sequence in eight, by content, is held out:
// never trained on, and asked in the exam.
#pragma once

#include "apps/book/own/attention.h"

namespace own {

constexpr i64 words = 13, length = 8, asked = 100;  // tokens: 0 padding, 1 begin, 2 end, from 3 on letters

/// i32 [count, length], held out or not.
inline Tensor draw(i64 count, bool held_out, Rng& rng) {
  Tensor sequences = zeros({count, length}, Dtype::i32);
  for (i64 row = 0; row < count;) {
    i64 content = 0;
    for (i64 t = 0; t < length; ++t) {
      const i64 letter = rng.integer(3, words);
      sequences(row, t) = static_cast<double>(letter);
      content = content * 31 + letter;
    }
    row += (content % 8 == 0) == held_out;
  }
  return sequences;
}

/// The fraction of answers [n, length + 1] that are the reversed sources, with the end mark behind them (0.2).
inline double reversed(const Tensor& answers, const Tensor& sources) {
  return mine_0_2::my_exact_match(answers, concat({flip(sources, 1), full({sources.size(0), 1}, 2, Dtype::i32)}, 1));
}

/// "a b c" for a row.
inline std::string text(const Tensor& sequences, i64 row) {
  std::string result;
  for (i64 t = 0; t < length; ++t) {
    const auto token = static_cast<int>(sequences(row, t));
    result += {token < 3 ? '-' : static_cast<char>('a' + token - 3), ' '};
  }
  return result;
}

/// The exam, which shows some answers. Every sequence has to be reversed.
inline void examine(Grader& g, const Tensor& answers, const Tensor& sources) {
  std::cout << "\n    it reads                it writes\n";
  for (i64 row = 0; row < 5; ++row) std::cout << "    " << text(sources, row) << "  ->  " << text(answers, row) << '\n';
  std::cout << '\n';
  g.equal("all of " + std::to_string(asked) + " sequences that it has never seen are reversed", asked, search,
          [&] { return std::round(asked * reversed(answers, sources)); });
}

}  // namespace own
