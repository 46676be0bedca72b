// Chapter 3. Solution of exercise 3.5: a gradient checker of your own.
//
// A function from n numbers to m numbers, and its backward, which maps x and dy (m numbers) to dx (n numbers).
// Return true if the backward is right at x, and false if it is wrong. Errors of one part in 10000 count; so does a
// backward that is right only for some dy, and one that gives NaN.
// orrery::Rng rng(1) makes random numbers: rng.normal() is the next one, from a normal distribution.
#include <cmath>
#include <functional>
#include <vector>

using Numbers = std::vector<double>;
using Function = std::function<Numbers(const Numbers& x)>;
using Backward = std::function<Numbers(const Numbers& x, const Numbers& dy)>;

// L(x) = <u, f(x)>.
double loss(const Function& f, const Numbers& x, const Numbers& u) {
  const Numbers y = f(x);
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += u[i] * y[i];
  return sum;
}

bool my_gradcheck(const Function& f, const Backward& backward, const Numbers& x) {
  constexpr double h = 1e-3, atol = 1e-9, rtol = 1e-7;
  orrery::Rng rng(1);
  Numbers u(f(x).size());
  for (double& number : u) number = rng.normal();
  const Numbers dx = backward(x, u);
  if (dx.size() != x.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = [&](double step) {
      Numbers moved = x;
      moved[i] += step;
      return loss(f, moved, u);
    };
    const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    if (!(std::fabs(dx[i] - numeric) <= atol + rtol * std::fabs(numeric))) return false;
  }
  return true;
}
