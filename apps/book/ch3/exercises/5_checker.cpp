// Chapter 3. Exercise 3.5: a gradient checker of your own.
//
// A function from n numbers to m numbers, and its backward, which maps x and dy (m numbers) to dx (n numbers).
// Return true if the backward is right at x, and false if it is wrong. Errors of one part in 10000 count; so does a
// backward that is right only for some dy, and one that gives NaN.
// orrery::Rng rng(1) makes random numbers: rng.normal() is the next one, from a normal distribution.
// Grade it:  apps/run exercise 3.5
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

using Numbers = std::vector<double>;
using Function = std::function<Numbers(const Numbers& x)>;
using Backward = std::function<Numbers(const Numbers& x, const Numbers& dy)>;

bool my_gradcheck(const Function&, const Backward&, const Numbers&) {
  throw std::logic_error("there is no answer yet");  // YOUR CODE
}
