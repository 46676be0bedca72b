// Chapter 9. The layers of a Transformer (7.4), for own.5 and own.6, with their parts: layer norm (4.5) and a gated
// feed-forward network (3.3); and what asks such a model for the next token (0.4).
#pragma once

#include "apps/book/own/attention.h"

namespace own {

inline Value norm(Value x) {
  return x.tape->record({x}, [](auto& in) { return mine_4_5::my_layer_norm(in[0], 1e-5); });
}

struct FeedForward {
  Linear up, gate, down;
  explicit FeedForward(Weights& w) : up(w, width, 2 * width), gate(w, width, 2 * width), down(w, 2 * width, width) {}
  Value operator()(Value x) const {
    return down(x.tape->record({up(x), gate(x)}, [](auto& in) { return mine_3_3::my_gate(in[0], in[1]); }));
  }
};

/// The parts of a layer with two heads. Norms have no weights, so that one serves everywhere; post-norm, as in the
/// paper.
struct EncoderParts {
  Attention self;
  FeedForward feed_forward;
  Value (*norm1)(Value) = norm, (*norm2)(Value) = norm;
  bool norm_first = false;
  explicit EncoderParts(Weights& weights) : self(weights, 2), feed_forward(weights) {}
};
struct DecoderParts : EncoderParts {
  Attention cross;
  Value (*norm3)(Value) = norm;
  explicit DecoderParts(Weights& weights) : EncoderParts(weights), cross(weights, 2) {}
};

/// Writes at most `most` tokens, each the one with the highest score. `scores` gives those of each place [T, words] of
/// a sentence i32 [1, T] on a new tape; `choose` may change those of the last one.
inline std::vector<i32> write(
    i64 most, const std::function<Value(Tape&, const Tensor&)>& scores,
    const std::function<void(std::vector<double>&)>& choose = [](std::vector<double>&) {}) {
  const NoGradient nothing_recorded;
  const auto next_scores = [&](const std::vector<i32>& written) {
    Tape tape;
    const Tensor all = scores(tape, Tensor::of<i32>({1, static_cast<i64>(written.size())}, written)).tensor();
    std::vector<double> last;
    for (i64 word = 0; word < all.size(1); ++word) last.push_back(all(-1, word));
    choose(last);
    return last;
  };
  return mine_0_4::my_write(next_scores, most);
}

}  // namespace own
