// Chapter 3. Exercise 3.4: finding a kink.
//
// Has f a derivative at x? Return true if not: if the slope on the right of x stays different from the slope on its
// left, however short the step. A function that is only steep or strongly curved has a derivative. You may evaluate f
// wherever you like; near x its slopes are at most 1e4 in size. A kink changes the slope by at least 1e-4, and kinks
// that are not at x are at least 1e-2 away.
// Grade it:  apps/run exercise 3.4
#include <cmath>
#include <functional>
#include <stdexcept>

using Function = std::function<double(double)>;

bool has_kink(const Function&, double) {
  throw std::logic_error("there is no answer yet");  // YOUR CODE
}
