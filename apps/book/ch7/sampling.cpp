// Chapter 7. How the next token is chosen: temperature, top-k and top-p, computed exactly for five words.
// Question: logits say how likely each next token is. What do temperature, top-k and top-p make of that?
// Answer: with temperature T, a token that is r times as likely as another one becomes r^(1/T) times as likely. Their
//   order stays. Towards T = 0 only the likeliest is left, which is greedy decoding; for large T all become equal.
//   Top-k and top-p set unlikely tokens to 0, and leave the quotients of the others as they are.
#include "nn/generate/sampling.h"

#include <cmath>
#include <iomanip>
#include <iostream>

using namespace orrery;

namespace {

const std::vector<std::string> words{"mat", "bed", "roof", "moon", "tax"};  // "the cat sat on the ..."
const Tensor logits = Tensor::of<double>({5}, {3, 2, 1, 0, -2});

// The probability with which each word is drawn.
std::vector<double> probabilities(const nn::SamplingOptions& options) {
  std::vector<double> p(words.size());
  for (const nn::Candidate& c : nn::candidates(logits, options)) p[static_cast<size_t>(c.token)] = c.probability;
  return p;
}

// e^H, with the entropy H = -sum p log p: n for n equally likely words, 1 for a single one.
double choices(const std::vector<double>& p) {
  double entropy = 0;
  for (const double x : p) entropy -= x > 0 ? x * std::log(x) : 0;
  return std::exp(entropy);
}

void print_row(const std::string& name, const std::vector<double>& p) {
  std::cout << std::left << std::setw(16) << name << std::right;
  for (const double x : p) std::cout << std::setw(8) << x;
  std::cout << std::setw(10) << choices(p) << '\n';
}

bool is_close(double a, double b) { return std::fabs(a - b) < 1e-12 * std::max(1.0, std::fabs(b)); }

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(3) << std::setw(16) << "";
  for (const std::string& word : words) std::cout << std::setw(8) << word;
  std::cout << std::setw(10) << "choices" << '\n';
  bool ok = true;
  const std::vector<double> plain = probabilities({.temperature = 1});
  double choices_before = 0;
  for (const double T : {0.0, 0.5, 1.0, 2.0, 100.0}) {
    const std::vector<double> p = probabilities({.temperature = T});
    std::ostringstream name;
    name << "temperature " << T;
    print_row(name.str(), p);
    ok &= choices(p) > choices_before;
    choices_before = choices(p);
    for (size_t k = 1; k < p.size() && T > 0; ++k)
      ok &= is_close(p[k - 1] / p[k], std::pow(plain[k - 1] / plain[k], 1 / T));
  }
  const std::vector<double> two = probabilities({.top_k = 2}), nucleus = probabilities({.top_p = 0.9});
  print_row("top-k 2", two);
  print_row("top-p 0.9", nucleus);
  ok &= is_close(two[0] / two[1], plain[0] / plain[1]) && two[2] == 0;
  ok &= is_close(nucleus[0] / nucleus[2], plain[0] / plain[2]) && nucleus[3] == 0;
  const std::vector<double> cold = probabilities({.temperature = 0.5});
  std::cout << "mat is " << plain[0] / plain[1] << " times as likely as bed; at temperature 0.5 " << cold[0] / cold[1]
            << " times\n";
  return ok && probabilities({.temperature = 0})[0] == 1 ? 0 : 1;
}
