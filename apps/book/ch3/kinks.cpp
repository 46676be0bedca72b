// Chapter 3. Where no derivative exists: what the numeric one says at a kink, and how the checker notices.
// Question: relu has slope 0 on the left of 0 and slope 1 on its right. What does the stencil say at 0, and near it?
// Answer: 1/2 at 0, whatever the step; near 0 something else for every step that reaches across. So the checker asks
//   again with shorter steps, and skips a coordinate whose two sides do not come together.
#include <iomanip>
#include <iostream>

#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

double relu_of(double x) { return x > 0 ? x : 0; }

double four_points(double x, double h) {
  return (8 * (relu_of(x + h) - relu_of(x - h)) - (relu_of(x + 2 * h) - relu_of(x - 2 * h))) / (12 * h);
}

// The slope on the right of x, from x and two points beyond it; with h < 0, the slope on its left.
double one_sided(double x, double h) { return (4 * relu_of(x + h) - relu_of(x + 2 * h) - 3 * relu_of(x)) / (2 * h); }

double jump(double x, double h) { return one_sided(x, h) - one_sided(x, -h); }

}  // namespace

int main() {
  constexpr double h = 1.0 / 1024;
  std::cout << "h = 1/" << 1 / h << "\nwhere      numeric with h   with h/4  with h/16   jump with h  with h/16\n"
            << std::fixed << std::setprecision(4);
  for (const double part : {0.0, 0.5, 1.5, 4.0}) {
    const double x = part * h;
    std::cout << "x = " << std::setprecision(1) << part << " h" << std::setprecision(4) << std::setw(15)
              << four_points(x, h) << std::setw(11) << four_points(x, h / 4) << std::setw(11) << four_points(x, h / 16)
              << std::setw(14) << jump(x, h) << std::setw(11) << jump(x, h / 16) << '\n';
  }

  const auto check_relu = [](i64 count) {
    Tensor x = Tensor::empty({count}, f64);
    for (i64 i = 0; i < count; ++i) x.set(i, static_cast<double>(i));  // 0, 1, 2, ...
    return gradcheck(&relu, {x});
  };
  const GradcheckReport many = check_relu(20), few = check_relu(19);
  std::cout << "\n20 coordinates, one of them at 0: " << (many ? "ok" : "failed") << ", " << many.skipped
            << " skipped\n19 coordinates, one of them at 0: " << (few ? "ok" : "failed") << " ("
            << name_of(few.failed_check()) << ")\n";
  return four_points(0, h) == 0.5 && many && many.skipped == 1 && few.failed_check() == GradientCheck::kinks ? 0 : 1;
}
