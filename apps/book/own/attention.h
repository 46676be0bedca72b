// Chapter 9. Tokens with positions (1.4, 6.5), and attention of several heads, for the milestones from own.4 on.
#pragma once

#include "apps/book/own/framework.h"

namespace own {

constexpr i64 width = 32;

struct Embedding {
  i64 words;
  Weight* table;
  Embedding(Weights& weights, i64 count) : words(count), table(weights.make({count, width}, 1)) {}
  /// ids [B, T] to [B T, width]: a row of the table is a product with a one-hot row.
  Value operator()(Tape& tape, const Tensor& ids) const {
    const i64 B = ids.size(0), T = ids.size(1);
    const Tensor places = mine_6_5::my_sinusoids(T, width), one_hot = mine_1_4::my_one_hot(ids.reshape({B * T}), words);
    return matmul(tape.input(one_hot), tape.weight(table)) +
           tape.input(broadcast_to(places.reshape({1, T, width}), {B, T, width}).reshape({B * T, width}));
  }
};

/// Rows [first, first + rows) of x, and of each row `columns` from `column` on.
inline Value cut(Value x, i64 first, i64 rows, i64 column, i64 columns) {
  return x.tape->record(
      {x}, [=](auto& in) { return slice(slice(in[0], 0, first, first + rows), 1, column, column + columns); });
}
inline Value join(const std::vector<Value>& parts, i64 axis) {
  return parts[0].tape->record(parts, [=](auto& in) { return concat(std::span<const Variable>(in), axis); });
}

/// Attention of one head: Q [n, d_k], K and V [m, d_k] to [n, d_k].
using Head = std::function<Value(Value Q, Value K, Value V)>;

struct Attention {
  i64 heads;
  Linear query, key, value, output;
  Attention(Weights& w, i64 count)
      : heads(count), query(w, width, width), key(w, width, width), value(w, width, width), output(w, width, width) {}

  /// x and memory have `sentences` sentences, one below the other; each looks at its own.
  Value operator()(Value x, Value memory, i64 sentences, const Head& head) const {
    const Value Q = query(x), K = key(memory), V = value(memory);
    const i64 n = x.tensor().size(0) / sentences, m = memory.tensor().size(0) / sentences, d = width / heads;
    std::vector<Value> rows;
    for (i64 s = 0; s < sentences; ++s) {
      std::vector<Value> parts;
      for (i64 h = 0; h < heads; ++h)
        parts.push_back(head(cut(Q, s * n, n, h * d, d), cut(K, s * m, m, h * d, d), cut(V, s * m, m, h * d, d)));
      rows.push_back(join(parts, 1));
    }
    return output(join(rows, 0));
  }
};

}  // namespace own
