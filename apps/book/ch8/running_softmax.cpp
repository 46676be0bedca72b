// Chapter 8. Softmax over keys that go by in tiles: one query, four keys, two at a time.
// Question: how does attention compute a softmax without ever seeing all scores at once, forward and backward?
// Answer: it keeps the largest score so far, the sum of e^(s - largest) and an undivided output, and multiplies what it
//   has by a = e^(old - new) when a larger score comes. Backward needs one number more, D = dO O, known before the
//   keys.
#include <array>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>

using std::setw;

int main() {
  constexpr size_t keys = 4, tile = 2;
  const std::array<double, keys> score{std::log(2.0), 0, std::log(8.0), std::log(4.0)}, value{15, 30, 0, 15};
  std::cout << std::fixed << std::setprecision(4) << "tile   largest       a     sum        O\n";

  double largest = -std::numeric_limits<double>::infinity(), sum = 0, O = 0;
  for (size_t first = 0; first < keys; first += tile) {
    double now = largest;
    for (size_t j = first; j < first + tile; ++j) now = std::max(now, score[j]);
    const double a = std::exp(largest - now);  // what earlier tiles are worth now; 0 before the first
    sum *= a;
    O *= a;
    for (size_t j = first; j < first + tile; ++j) {
      const double weight = std::exp(score[j] - now);
      sum += weight;
      O += weight * value[j];
    }
    largest = now;
    std::cout << setw(4) << first / tile << setw(10) << largest << setw(8) << a << setw(8) << sum << setw(9) << O
              << '\n';
  }
  O /= sum;

  double whole = 0, weights = 0;
  for (size_t j = 0; j < keys; ++j) {
    const double weight = std::exp(score[j]);
    weights += weight;
    whole += weight * value[j];
  }
  std::cout << "divided " << setw(30) << O << "\nin one piece" << setw(26) << whole / weights << '\n';

  const double dO = 1, D = dO * O;
  double sum_of_P_dP = 0, sum_of_dS = 0;
  std::cout << "backward, D = " << D << "\n key       P       dP  dS = P (dP - D)\n";
  for (size_t j = 0; j < keys; ++j) {
    const double P = std::exp(score[j] - largest) / sum, dP = dO * value[j], dS = P * (dP - D);
    sum_of_P_dP += P * dP;
    sum_of_dS += dS;
    std::cout << setw(4) << j << setw(8) << P << setw(9) << dP << setw(17) << dS << '\n';
  }
  std::cout << "sum of P dP = " << sum_of_P_dP << ", sum of dS = " << std::fabs(sum_of_dS) << '\n';
  const auto equal = [](double x, double y) { return std::fabs(x - y) < 1e-12; };
  return equal(O, 8) && equal(O, whole / weights) && equal(D, sum_of_P_dP) && equal(sum_of_dS, 0) ? 0 : 1;
}
