// Chapter 3. A wrong answer to exercise 3.5: a one-sided difference, and a tolerance as coarse as it needs.
// Expect: FAILED  x^3 with a slope that is 1.0001 times too large: wrong
#include <cmath>
#include <functional>
#include <vector>

using Numbers = std::vector<double>;
using Function = std::function<Numbers(const Numbers& x)>;
using Backward = std::function<Numbers(const Numbers& x, const Numbers& dy)>;

double loss(const Function& f, const Numbers& x, const Numbers& u) {
  const Numbers y = f(x);
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += u[i] * y[i];
  return sum;
}

bool my_gradcheck(const Function& f, const Backward& backward, const Numbers& x) {
  orrery::Rng rng(1);
  Numbers u(f(x).size());
  for (double& number : u) number = rng.normal();
  const Numbers dx = backward(x, u);
  if (dx.size() != x.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    Numbers moved = x;
    moved[i] += 1e-4;
    const double numeric = (loss(f, moved, u) - loss(f, x, u)) / 1e-4;
    if (!(std::fabs(dx[i] - numeric) <= 1e-2)) return false;
  }
  return true;
}
