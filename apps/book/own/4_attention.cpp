// Chapter 9. Milestone own.4: attention that reverses.
//
// One head (6.2, 6.3) and positions (6.5), and no other layer: the query of place t must find the key of place 7 - t.
#include "apps/book/own/sequences.h"

namespace own {

struct Reverser {
  Weights weights;
  Embedding embedding{weights, words};
  Attention attention{weights, 1};
  Linear output{weights, width, words};

  // Scores of each place's letter, for sequences [B, length]: [B length, words].
  Value operator()(Tape& tape, const Tensor& sequences, const mine_6_3::Attend& attend = mine_6_2::my_attention) const {
    const Value x = embedding(tape, sequences);
    return output(attention(x, x, {sequences.size(0), open_mask, attend}));
  }
  Tensor answers(const Tensor& sequences) const {
    Tape tape;
    const i64 n = sequences.size(0);
    const Tensor letters = argmax((*this)(tape, sequences).tensor()).reshape({n, length});
    return concat({letters, full({n, 1}, 2, Dtype::i32)}, 1);
  }
};

// Rows are places that write, columns places that are read. The weights are what attention gives for V = I.
void show_weights(const Reverser& model, const Tensor& sequence) {
  Tape tape;
  Tensor weights;
  model(tape, sequence, [&](const Variable& Q, const Variable& K, const Variable& V, const Tensor& allowed) {
    const Tensor identity = mine_1_4::my_one_hot(arange(length), length);
    weights = mine_6_2::my_attention(Q, K, constant(identity), allowed).value();
    return mine_6_2::my_attention(Q, K, V, allowed);
  });
  const std::string answer = text(model.answers(sequence), 0);
  std::cout << "\nWhat each letter that it writes looked at, the darker the more. Nobody told it to:\n\n        "
            << text(sequence, 0) << '\n';
  for (i64 i = 0; i < length; ++i) {
    std::cout << "    " << answer[static_cast<size_t>(2 * i)] << "   ";
    for (i64 j = 0; j < length; ++j) std::cout << shade(weights(i, j));
    std::cout << '\n';
  }
}

void train(Grader& g) {
  Reverser model;
  Rng rng(2), exam_rng(3);
  const Tensor exam = draw(asked, true, exam_rng);
  const auto loss = [&](Tape& tape) {
    const Tensor sequences = draw(16, false, rng), wanted = flip(sequences, 1);
    return cross_entropy(model(tape, sequences), {wanted.data<i32>(), wanted.data<i32>() + wanted.count()});
  };
  teach(model.weights, 500, loss, [&] { return percent(reversed(model.answers(exam), exam)) + " reversed"; });
  show_weights(model, exam.rows(0, 1));
  examine(g, model.answers(exam), exam);
}

}  // namespace own
