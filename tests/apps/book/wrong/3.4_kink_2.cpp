// Chapter 3. A wrong answer to exercise 3.4: central differences with two steps are compared: at a kink they agree.
// Expect: FAILED  |x| at 0
#include <cmath>
#include <functional>

using Function = std::function<double(double)>;

double central(const Function& f, double x, double h) { return (f(x + h) - f(x - h)) / (2 * h); }

bool has_kink(const Function& f, double x) { return std::fabs(central(f, x, 1e-4) - central(f, x, 1e-5)) > 1e-8; }
