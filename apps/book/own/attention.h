// Chapter 9. Tokens with positions (1.4, 6.5), and attention (6.2) of several heads (6.3), for own.4 to own.6.
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

/// Who may attend to whom in a sentence of n tokens, m of them in memory: a table i32 [n, m].
using Mask = Tensor (*)(i64 n, i64 m);
inline Tensor open_mask(i64 n, i64 m) { return full({n, m}, 1, Dtype::i32); }

/// Where attention looks, and how: x and memory have `sentences` sentences, one below the other, and each looks at its
/// own. `attend` is the attention of a head.
struct View {
  i64 sentences;
  Mask mask = open_mask;
  mine_6_3::Attend attend = mine_6_2::my_attention;
};

/// Several heads (6.3), with the matrices W^Q, W^K, W^V and W^O.
struct Attention {
  i64 heads;
  std::array<Weight*, 4> matrices;
  Attention(Weights& weights, i64 count) : heads(count) {
    for (Weight*& matrix : matrices) matrix = weights.make({width, width}, mine_5_1::xavier_bound(width, width));
  }
  Value operator()(Value x, Value memory, const View& view) const {
    std::vector<Value> inputs{x, memory};
    for (Weight* matrix : matrices) inputs.push_back(x.tape->weight(matrix));
    return x.tape->record(inputs, [&](auto& in) {
      const i64 n = in[0].size(0) / view.sentences, m = in[1].size(0) / view.sentences;
      const Tensor allowed = view.mask(n, m);
      const auto with = [](const Variable& M) { return [=](const Variable& v) { return mine_4_1::my_matmul(v, M); }; };
      const mine_6_3::Projections W{with(in[2]), with(in[3]), with(in[4]), with(in[5])};
      std::vector<Variable> rows;
      for (i64 s = 0; s < view.sentences; ++s)
        rows.push_back(mine_6_3::my_multi_head(slice(in[0], 0, s * n, (s + 1) * n), slice(in[1], 0, s * m, (s + 1) * m),
                                               W, heads, allowed, view.attend));
      return concat(rows, 0);
    });
  }
};

}  // namespace own
