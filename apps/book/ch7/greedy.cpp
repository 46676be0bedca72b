// Chapter 7. Greedy decoding can miss the likeliest sentence.
// Question: does taking the likeliest token at each step give the likeliest sentence?
// Answer: no. Below, "the" is the likeliest first word, yet each sentence that begins with it is less likely than
//   "a cat". A search that keeps the two best beginnings finds it; that is exercise 7.7.
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using Choices = std::map<std::string, double, std::greater<>>;  // a word, and the probability that it comes next

// A language of two-word sentences.
const std::map<std::string, Choices> next{{"", {{"the", 0.6}, {"a", 0.4}}},
                                          {"the", {{"cat", 0.35}, {"dog", 0.33}, {"fox", 0.32}}},
                                          {"a", {{"cat", 0.9}, {"dog", 0.06}, {"fox", 0.04}}}};

struct Sentence {
  std::string words;
  double probability = 0;
};

std::string likeliest(const Choices& choices) {
  std::string best;
  for (const auto& [word, p] : choices)
    if (best.empty() || p > choices.at(best)) best = word;
  return best;
}

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(3);
  Sentence best;
  for (const auto& [first, p] : next.at("")) {
    for (const auto& [second, given_first] : next.at(first)) {
      const Sentence sentence{first + " " + second, p * given_first};
      std::cout << std::setw(9) << sentence.words << "  " << p << " * " << given_first << " = " << sentence.probability
                << "   log " << std::log(p) << " + " << std::log(given_first) << " = " << std::log(sentence.probability)
                << '\n';
      if (sentence.probability > best.probability) best = sentence;
    }
  }
  const std::string first = likeliest(next.at("")), second = likeliest(next.at(first));
  const double greedy = next.at("").at(first) * next.at(first).at(second);
  std::cout << "greedy    " << first << ' ' << second << ", " << greedy << "\nlikeliest " << best.words << ", "
            << best.probability << '\n';
  return greedy < best.probability ? 0 : 1;
}
