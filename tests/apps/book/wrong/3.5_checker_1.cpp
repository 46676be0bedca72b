// Chapter 3. A wrong answer to exercise 3.5: dy is all ones: L is a plain sum.
// Expect: FAILED  x - mean(x), a backward that sends nothing: wrong
#include <cmath>
#include <functional>
#include <vector>

using Numbers = std::vector<double>;
using Function = std::function<Numbers(const Numbers& x)>;
using Backward = std::function<Numbers(const Numbers& x, const Numbers& dy)>;

double loss(const Function& f, const Numbers& x) {
  double sum = 0;
  for (const double y : f(x)) sum += y;
  return sum;
}

bool my_gradcheck(const Function& f, const Backward& backward, const Numbers& x) {
  constexpr double h = 1e-3, atol = 1e-9, rtol = 1e-7;
  const Numbers dx = backward(x, Numbers(f(x).size(), 1.0));
  if (dx.size() != x.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = [&](double step) {
      Numbers moved = x;
      moved[i] += step;
      return loss(f, moved);
    };
    const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    if (!(std::fabs(dx[i] - numeric) <= atol + rtol * std::fabs(numeric))) return false;
  }
  return true;
}
