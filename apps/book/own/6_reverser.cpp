// Chapter 9. Milestone own.6: the reverser.
//
// The paper's encoder and decoder, one layer each, learn what `orrery toy` learned in chapter 0. What computes and what
// learns are answers to exercises; sums, cuts and joins are the library's.
#include "apps/book/own/layers.h"
#include "apps/book/own/sequences.h"

namespace own {

// The attention of 6.4, with its own backward, where every key is seen; the cap is far away.
Variable open_attention(const Variable& Q, const Variable& K, const Variable& V, const Tensor&) {
  return mine_6_4::my_attention(Q, K, V, 50);
}

struct Transformer {
  Weights weights;
  Embedding embedding{weights, words};  // of sources and targets
  EncoderParts encoder{weights};
  DecoderParts decoder{weights};
  Linear output{weights, width, words};

  Value operator()(Tape& tape, const Tensor& source, const Tensor& target) const {
    const View open{source.size(0), open_mask, open_attention}, causal{source.size(0), mine_6_1::my_causal_mask};
    const Value memory = mine_7_4::my_encoder_layer(embedding(tape, source), open, encoder);
    return output(mine_7_4::my_decoder_layer(embedding(tape, target), memory, causal, open, decoder));
  }
  // i32 [n, length + 1], with the end mark where it was said.
  Tensor answers(const Tensor& sources) const {
    Tensor result = zeros({sources.size(0), length + 1}, Dtype::i32);
    for (i64 row = 0; row < sources.size(0); ++row) {
      const Tensor source = sources.rows(row, row + 1);
      i64 t = 0;
      for (const i32 token :
           write(length + 1, [&](Tape&tape, const Tensor&written) { return (*this)(tape, source, written); }))
        result(row, t++) = token;
      if (t <= length) result(row, t) = 2;
    }
    return result;
  }
};

void train(Grader& g) {
  Transformer model;
  Rng rng(2), exam_rng(3);
  const Tensor exam = draw(asked, true, exam_rng), some = exam.rows(0, 20);
  const auto loss = [&](Tape& tape) {
    const Tensor source = draw(16, false, rng), target = mine_0_1::my_target(flip(source, 1));  // a copy of the reverse
    const Tensor next = mine_0_1::my_next_tokens(target);
    return cross_entropy(model(tape, source, mine_0_1::my_decoder_input(target)),
                         {next.data<i32>(), next.data<i32>() + next.count()});
  };
  teach(model.weights, 1000, loss, [&] { return percent(reversed(model.answers(some), some)) + " of 20 reversed"; });
  examine(g, model.answers(exam), exam);
}

}  // namespace own
