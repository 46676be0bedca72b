// Chapter 3. A wrong answer to exercise 3.2: the central difference: its error falls with h^2.
// Expect: the number is 3.25, should be 3
#include <functional>

double my_slope(const std::function<double(double)>& f, double x, double h) { return (f(x + h) - f(x - h)) / (2 * h); }
