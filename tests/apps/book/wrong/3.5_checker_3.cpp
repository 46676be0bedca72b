// Chapter 3. A wrong answer to exercise 3.5: one step along all inputs at once.
// Expect: FAILED  x - mean(x), the right backward: right
#include <cmath>
#include <functional>
#include <vector>

using Numbers = std::vector<double>;
using Function = std::function<Numbers(const Numbers& x)>;
using Backward = std::function<Numbers(const Numbers& x, const Numbers& dy)>;

bool my_gradcheck(const Function& f, const Backward& backward, const Numbers& x) {
  constexpr double h = 1e-3;
  const Numbers u(f(x).size(), 1.0), dx = backward(x, u);
  const auto at = [&](double step) {
    Numbers moved = x;
    for (double& number : moved) number += step;
    double sum = 0;
    for (const double y : f(moved)) sum += y;
    return sum;
  };
  const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  double analytic = 0;
  for (const double part : dx) analytic += part;
  return std::fabs(analytic - numeric) <= 1e-9 + 1e-7 * std::fabs(numeric) && analytic != 0;
}
