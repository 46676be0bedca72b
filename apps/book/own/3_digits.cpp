// Chapter 9. Milestone own.3: digits.
//
// A network with one hidden layer reads digits written by hand, 8 x 8 pixels. It learns from the first 1347 lines of
// apps/data/digits.txt; its exam are the other 450.
#include <fstream>

#include "apps/book/own/framework.h"

namespace own {

struct Digits {
  Tensor pixels;  // [n, 64], each row of mean 0 (1.3)
  std::vector<i64> labels;

  // Each line of the file: 64 pixels from 0 to g, a blank, and the digit.
  Digits() {
    std::ifstream file("apps/data/digits.txt");
    std::vector<double> read;
    for (std::string line; std::getline(file, line); labels.push_back(line.at(65) - '0'))
      for (const char c : line.substr(0, 64)) read.push_back((c <= '9' ? c - '0' : c - 'a' + 10) / 16.0);
    check(!labels.empty(), "digits", "cannot read apps/data/digits.txt");
    pixels = mine_1_3::my_centred_rows(Tensor::of<double>({static_cast<i64>(labels.size()), 64}, read));
  }
  i64 label(i64 row) const { return labels[static_cast<size_t>(row)]; }
};

struct Network {
  Weights weights;
  Linear hidden{weights, 64, 32}, output{weights, 32, 10};
  Value operator()(Value pixels) const {
    return output(pixels.tape->record({hidden(pixels)}, [](auto& x) { return mine_3_1::my_softplus(x[0]); }));
  }
};

// Pictures beside one another, the first pixel of each for the ground.
void show(const Tensor& pixels, const std::vector<i64>& rows) {
  for (i64 y = 0; y < 8; ++y, std::cout << '\n')
    for (const i64 row : rows) {
      const double ground = pixels(row, 0), ink = max(pixels.rows(row, row + 1)).item() - ground;
      for (i64 x = 0; x < 8; ++x) std::cout << shade((pixels(row, 8 * y + x) - ground) / ink);
      std::cout << "  ";
    }
}

void train(Grader& g) {
  constexpr i64 lessons = 1347, batch = 64;
  const Digits digits;
  Network network;
  Tensor answers;  // to all digits
  const auto right = [&] {
    Tape tape;
    answers = argmax(network(tape.input(digits.pixels)).tensor());
    double count = 0;
    for (i64 row = lessons; row < answers.count(); ++row) count += answers.at(row) == digits.label(row);
    return count / static_cast<double>(answers.count() - lessons);
  };
  Rng rng(2);
  const auto loss = [&](Tape& tape) {
    Tensor pixels = zeros({batch, 64}, f64);
    std::vector<i64> labels;
    for (i64 i = 0; i < batch; ++i) {
      const i64 row = rng.integer(0, lessons);
      slice_into(pixels, digits.pixels.rows(row, row + 1), 0, i, false);
      labels.push_back(digits.label(row));
    }
    return cross_entropy(network(tape.input(pixels)), labels);
  };
  teach(network.weights, 500, loss, [&] { return percent(right()) + " of the exam"; });
  std::vector<i64> shown{lessons, lessons + 1, lessons + 2};
  for (i64 row = lessons; row < answers.count() && shown.size() < 5; ++row)
    if (answers.at(row) != digits.label(row)) shown.push_back(row);
  std::cout << "\nThree digits of the exam, and two that it got wrong:\n\n";
  show(digits.pixels, shown);
  for (const i64 row : shown)
    std::cout << "says " << static_cast<i64>(answers.at(row)) << ", is " << digits.label(row) << "       ";
  std::cout << "\n\n";
  g.check("at least 90 % of 450 new digits are read", search, [&] { return right() >= 0.9; });
}

}  // namespace own
