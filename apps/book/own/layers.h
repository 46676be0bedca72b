// Chapter 9. The other layers of a Transformer, for own.5 and own.6: a head with a causal mask (4.1, 4.2, 6.1), layer
// norm (4.5), a gated feed-forward network (3.3); and what asks such a model for the next token (0.4).
#pragma once

#include "apps/book/own/attention.h"

namespace own {

/// A query sees its own place and those before it.
inline Value causal_head(Value Q, Value K, Value V) {
  const i64 n = Q.tensor().size(0), m = K.tensor().size(0);
  const Tensor mask = (mine_6_1::my_causal_mask(n, m).to(f64) - 1.0) * 1e9;  // 0 where it may look
  const double factor = 1 / std::sqrt(static_cast<double>(Q.tensor().size(1)));
  const Value scores = matmul(Q, K.tape->record({K}, [](auto& in) { return permute(in[0], {1, 0}); }));
  return matmul(
      Q.tape->record({scores}, [&](auto& in) { return mine_4_2::my_softmax(in[0] * factor + constant(mask)); }), V);
}

inline Value add_and_norm(Value x, Value y) {
  return x.tape->record({x + y}, [](auto& in) { return mine_4_5::my_layer_norm(in[0], 1e-5); });
}

struct FeedForward {
  Linear up, gate, down;
  explicit FeedForward(Weights& w) : up(w, width, 2 * width), gate(w, width, 2 * width), down(w, 2 * width, width) {}
  Value operator()(Value x) const {
    return down(x.tape->record({up(x), gate(x)}, [](auto& in) { return mine_3_3::my_gate(in[0], in[1]); }));
  }
};

/// Writes at most `most` tokens; `scores` are those of each place [T, words] of a sentence i32 [1, T] on a new tape.
inline std::vector<i32> write(
    i64 most, const std::function<Value(Tape&, const Tensor&)>& scores,
    const std::function<double()>& noise = [] { return 0.0; }) {
  const NoGradient nothing_recorded;
  const auto next_scores = [&](const std::vector<i32>& written) {
    Tape tape;
    const Tensor all = scores(tape, Tensor::of<i32>({1, static_cast<i64>(written.size())}, written)).tensor();
    std::vector<double> last;
    for (i64 word = 0; word < all.size(1); ++word) last.push_back(all(-1, word) + noise());
    return last;
  };
  return mine_0_4::my_write(next_scores, most);
}

}  // namespace own
