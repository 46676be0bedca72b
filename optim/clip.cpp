// Chapter 5. Clipping by the global norm.
//
// Squares are summed in double, over fixed chunks: the norm has the same bits for any number of threads.
// Serves: optim/adam.h
#include "optim/clip.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "optim/parameters.h"

namespace orrery::optim {

namespace {

// The largest |g_i|; NaN if any is NaN.
double largest_element(const Tensor& g) { return std::max(max(g).item(), max(-g).item()); }

// Throws why the sum of squares is not finite: a gradient is not, or the squares are too large for a double.
[[noreturn]] void fail_without_norm(const Parameters& parameters) {
  double largest = 0;
  std::string name;
  for (const NamedParameter& p : parameters) {
    if (!p.value.gradient().defined() || p.value.gradient().count() == 0) continue;
    const double here = largest_element(p.value.gradient());
    check(std::isfinite(here), "clip_grad_norm", "the gradient of parameter ", p.name, " is not finite");
    if (here > largest) {
      largest = here;
      name = p.name;
    }
  }
  fail("clip_grad_norm", "the norm is not finite though every gradient is: the largest, of parameter ", name,
       ", reaches ", largest);
}

}  // namespace

double grad_norm(const Parameters& each) {
  std::vector<const Tensor*> gradients;
  std::vector<i64> sizes;
  for (const NamedParameter& p : each) {
    if (!p.value.gradient().defined()) continue;
    gradients.push_back(&p.value.gradient());
    sizes.push_back(gradients.back()->count());
  }
  const std::vector<Piece> pieces = pieces_of(sizes);
  std::vector<double> squares(pieces.size());
  parallel_tasks(static_cast<i64>(pieces.size()), [&](i64 i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    squares[static_cast<size_t>(i)] = sum_of_squares(*gradients[piece.owner], piece.begin, piece.end);
  });
  const double total = std::accumulate(squares.begin(), squares.end(), 0.0);
  if (!std::isfinite(total)) fail_without_norm(each);
  return std::sqrt(total);
}

double clip_factor(double norm, double max_norm) {
  check(max_norm > 0, "clip_grad_norm", "max_norm must be positive, got ", max_norm);
  return std::min(1.0, max_norm / (norm + 1e-6));
}

double clip_grad_norm(const Parameters& parameters, double max_norm) {
  Parameters each = without_repeats(parameters);
  const double norm = grad_norm(each), factor = clip_factor(norm, max_norm);
  if (factor < 1) {
    for (NamedParameter& p : each) {
      if (p.value.gradient().defined()) scale_in_place(p.value.mutable_gradient(), factor);
    }
  }
  return norm;
}

}  // namespace orrery::optim
