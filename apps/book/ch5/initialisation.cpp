// Chapter 5. What Xavier's bound keeps equal: an experiment.
// Question: how do the sizes of activations and gradients change on their way through ten linear maps?
// Answer: drawn with Xavier's bound, both keep their size where all widths are equal. A fixed standard deviation of
//   0.01 makes both vanish; relu halves both at every map; from 64 to 256 numbers activations shrink as gradients grow.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/init.h"

using namespace orrery;

namespace {

constexpr i64 batch = 256;

// The mean of the squares: the variance of numbers whose mean is 0.
double size_of(const Tensor& x) { return dot(x, x) / static_cast<double>(x.count()); }

struct Change {
  double forward, backward;
};

// Sends x through maps from each width to the next and a gradient back. Returns by what factor each of both has grown.
Change through(nn::Init init, const std::vector<i64>& widths, bool with_relu) {
  Rng rng(5);
  const Variable x = parameter(randn({batch, widths.front()}, rng, f64));
  Variable y = x;
  for (size_t i = 1; i < widths.size(); ++i) {
    const Variable W = constant(nn::initial_weight(init, widths[i], widths[i - 1], rng).to(f64));
    y = matmul(y, W, Trans::b);
    if (with_relu) y = relu(y);
  }
  const Tensor dy = randn(y.shape(), rng, f64);
  backward(y, dy);
  return {size_of(y.value()) / size_of(x.value()), size_of(x.gradient()) / size_of(dy)};
}

Change show(const char* what, nn::Init init, const std::vector<i64>& widths, bool with_relu = false) {
  const Change change = through(init, widths, with_relu);
  std::cout << std::left << std::setw(36) << what << std::setw(12) << change.forward << change.backward << '\n';
  return change;
}

bool near(double measured, double predicted, double tolerance) {
  return std::fabs(measured / predicted - 1) < tolerance;
}

}  // namespace

int main() {
  using nn::Init;
  std::cout << std::setprecision(2) << std::left << std::setw(36) << "" << std::setw(12) << "activations"
            << "gradients\n";
  const Change wider = show("one map, 64 to 256, xavier", Init::xavier, {64, 256});
  const Change equal = show("one map, 256 to 256, xavier", Init::xavier, {256, 256});
  const std::vector<i64> ten(11, 256), hourglass{64, 256, 64, 256, 64, 256, 64, 256, 64, 256, 64};
  const Change xavier = show("ten of 256, xavier", Init::xavier, ten);
  const Change pytorch = show("ten of 256, pytorch_linear", Init::pytorch_linear, ten);
  const Change normal = show("ten of 256, normal_001", Init::normal_001, ten);
  const Change rectified = show("ten of 256, xavier, relu", Init::xavier, ten, true);
  show("64 to 256 and back, five times", Init::xavier, hourglass);

  const bool one = near(wider.forward, 2.0 * 64 / (64 + 256), 0.1) && near(wider.backward, 2.0 * 256 / (64 + 256), 0.1);
  const bool kept = near(equal.forward, 1, 0.1) && near(xavier.forward, 1, 0.5) && near(xavier.backward, 1, 0.5);
  const bool lost = near(pytorch.forward, std::pow(3, -10), 0.5) && normal.forward < 1e-14 && normal.backward < 1e-14;
  return one && kept && lost && near(rectified.forward, std::pow(2, -10), 0.5) ? 0 : 1;
}
