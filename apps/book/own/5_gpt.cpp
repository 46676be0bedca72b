// Chapter 9. Milestone own.5: a GPT that writes.
//
// It reads 100 sentences about animals and people, letter by letter, and then writes some of its own. Nobody tells it
// what a word is. It draws each letter (7.8) from the softmax (4.2) of the scores, and the writer of 0.4 takes what was
// drawn.
#include <fstream>
#include <iterator>

#include "apps/book/own/layers.h"

namespace own {

struct Text {
  std::set<std::string> sentences, words;
  std::vector<std::string> lines;
  std::string letters = "???";  // token 3 is the first letter; 0 is padding, 1 the begin mark, 2 the end mark
  size_t longest = 0;

  Text() {
    std::ifstream file("apps/data/animals.en");
    for (std::string line, word; std::getline(file, line); lines.push_back(line)) {
      sentences.insert(line);
      longest = std::max(longest, line.size());
      for (std::istringstream in(line); in >> word;) words.insert(word);
      for (const char c : line)
        if (letters.find(c) == letters.npos) letters += c;
    }
    check(!lines.empty(), "gpt", "cannot read apps/data/animals.en");
  }
  bool has_words(const std::string& sentence) const {
    std::istringstream in(sentence);
    return std::all_of(std::istream_iterator<std::string>(in), {}, [&](auto& word) { return words.contains(word); });
  }
};

struct Gpt {
  const Text& text;
  i64 tokens = static_cast<i64>(text.letters.size()), most = static_cast<i64>(text.longest);
  Weights weights{};
  Embedding embedding{weights, tokens};
  EncoderParts layer{weights};
  Linear output{weights, width, tokens};

  Value operator()(Tape& tape, const Tensor& ids) const {
    const View causal{ids.size(0), mine_6_1::my_causal_mask};
    return output(mine_7_4::my_encoder_layer(embedding(tape, ids), causal, layer));
  }
  // The loss of some sentences: what is read and what is to be said are a place apart, and padding does not count.
  Value loss(Tape& tape, i64 sentences, Rng& rng) const {
    Tensor input = zeros({sentences, most + 1}, Dtype::i32);
    std::vector<i64> targets(static_cast<size_t>(input.count()), -1);
    for (i64 row = 0; row < sentences; ++row) {
      auto target = targets.begin() + row * (most + 1);
      i64 t = 0;
      input(row, t) = 1;
      for (const char letter : text.lines[static_cast<size_t>(rng.integer(0, static_cast<i64>(text.lines.size())))]) {
        *target++ = static_cast<i64>(text.letters.find(letter));
        input(row, ++t) = static_cast<double>(target[-1]);
      }
      *target = 2;
    }
    return cross_entropy((*this)(tape, input), targets);
  }
  std::string sentence(Rng& rng) const {
    std::string result;
    const auto draw = [&](std::vector<double>& scores) {
      const auto n = static_cast<i64>(scores.size());
      const Tensor p = mine_4_2::my_softmax(constant(Tensor::of<double>({1, n}, scores))).value();
      const size_t drawn = mine_7_8::my_sample({p.data<double>(), p.data<double>() + n}, 0.95, rng.uniform());
      for (size_t i = 0; i < scores.size(); ++i) scores[i] = i == drawn;
    };
    for (const i32 token : write(
             most, [&](Tape&tape, const Tensor&ids) { return (*this)(tape, ids); }, draw))
      result += text.letters[static_cast<size_t>(token)];
    return result;
  }
};

void train(Grader& g) {
  const Text text;
  Gpt model{text};
  Rng data(2), dice(3);
  teach(
      model.weights, 800, [&](Tape& tape) { return model.loss(tape, 8, data); }, [&] { return model.sentence(dice); });
  std::cout << "\nTwenty sentences of its own. * marks those that nobody wrote before:\n\n";
  int right = 0, new_ones = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string sentence = model.sentence(dice);
    const bool is_new = !text.sentences.contains(sentence);
    std::cout << (is_new ? "  * " : "    ") << sentence << '\n';
    right += text.has_words(sentence);
    new_ones += is_new && text.has_words(sentence);
  }
  std::cout << '\n';
  g.check("at least 15 of 20 sentences have only words that there are", search, [&] { return right >= 15; });
  g.check("at least 5 of them are new", "Does it write the same sentence again and again?",
          [&] { return new_ones >= 5; });
}

}  // namespace own
