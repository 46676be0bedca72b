// Chapter 5. Clipping by the global norm.
//
// Squares are summed in double, over fixed chunks: the norm has the same bits for any number of threads.
#include "optim/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/kernels/elementwise.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "optim/parameters.h"

namespace orrery::optim {

namespace {

bool takes_part(const NamedParameter& p) { return !p.value.is_frozen() && p.value.gradient().defined(); }

// The parameters that have a gradient to move by, and their gradients cut into pieces.
struct Gradients {
  explicit Gradients(const Parameters& each) {
    std::vector<i64> sizes;
    for (const NamedParameter& p : each) {
      if (!takes_part(p)) continue;
      names.push_back(&p.name);
      tensors.push_back(&p.value.gradient());
      sizes.push_back(tensors.back()->count());
    }
    pieces = pieces_of(sizes);
  }
  // What f(gradient, begin, end) gives for each piece.
  template <class Result, class F> std::vector<Result> of_each_piece(const F& f) const {
    std::vector<Result> results(pieces.size());
    const auto find = [&](i64 i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      results[static_cast<size_t>(i)] = f(*tensors[piece.owner], piece.begin, piece.end);
    };
    parallel_tasks(static_cast<i64>(pieces.size()), find, work_of(pieces));
    return results;
  }

  std::vector<const std::string*> names;
  std::vector<const Tensor*> tensors;
  std::vector<Piece> pieces;
};

// The largest |g_i|; NaN if any is NaN.
double largest_element(const Tensor& g) { return std::max(max(g).item(), max(-g).item()); }

// The norm where squares are too large or too small for a double: that of the gradients times a power of two, which
// brings the largest near 1. Errors: a gradient is not finite, or the norm.
double scaled_norm(const Parameters& parameters) {
  double largest = 0;
  std::string name;
  for (const NamedParameter& p : parameters) {
    if (!takes_part(p) || p.value.gradient().count() == 0) continue;
    const double here = largest_element(p.value.gradient());
    check(std::isfinite(here), "clip_grad_norm", "the gradient of parameter ", p.name, " is not finite");
    if (here > largest) {
      largest = here;
      name = p.name;
    }
  }
  if (largest == 0) return 0;
  constexpr int most = 1000;  // less than the exponents of double, so that 2^most and 2^-most are normal
  const double factor = std::ldexp(1.0, std::clamp(-std::ilogb(largest), -most, most));
  double total = 0;
  for (const NamedParameter& p : parameters)
    if (takes_part(p)) total += sum_of_squares(scale(p.value.gradient(), factor));
  const double norm = std::sqrt(total) / factor;
  check(std::isfinite(norm), "clip_grad_norm", "the norm is not finite though every gradient is: the largest, of ",
        "parameter ", name, ", reaches ", largest);
  return norm;
}

}  // namespace

double grad_norm(const Parameters& each) {
  const std::vector<double> squares = Gradients(each).of_each_piece<double>(
      [](const Tensor& g, i64 begin, i64 end) { return sum_of_squares(g, begin, end); });
  const double total = std::accumulate(squares.begin(), squares.end(), 0.0);
  using Limits = std::numeric_limits<double>;
  const bool squares_fit = std::isfinite(total) && total >= Limits::min() / Limits::epsilon();
  return squares_fit ? std::sqrt(total) : scaled_norm(each);
}

void check_finite_gradients(const Parameters& each) {
  const Gradients gradients(each);
  const std::vector<char> finite = gradients.of_each_piece<char>(all_finite);
  for (size_t i = 0; i < finite.size(); ++i)
    check(finite[i], "optimizer", "the gradient of parameter ", *gradients.names[gradients.pieces[i].owner],
          " is not finite");
}

double clip_factor(double norm, double max_norm) {
  check(max_norm > 0, "clip_grad_norm", "max_norm must be positive, got ", max_norm);
  return std::min(1.0, max_norm / (norm + 1e-6));
}

double clip_grad_norm(const Parameters& parameters, double max_norm) {
  Parameters each = without_repeats(parameters);
  const double norm = grad_norm(each), factor = clip_factor(norm, max_norm);
  if (factor < 1) {
    for (NamedParameter& p : each)
      if (takes_part(p)) scale_in_place(p.value.mutable_gradient(), factor);
  }
  return norm;
}

void clip_grad_value(const Parameters& parameters, double max_value) {
  check(max_value > 0, "clip_grad_value", "max_value must be positive, got ", max_value);
  Parameters each = without_repeats(parameters);
  check_finite_gradients(each);
  for (NamedParameter& p : each) {
    if (!takes_part(p)) continue;
    Tensor& g = p.value.mutable_gradient();
    dispatch_floating(g.dtype(), "clip_grad_value", [&](auto t) {
      using T = decltype(t);
      T* x = g.write<T>();
      const T most = static_cast<T>(max_value);
      kernels::map<T>(g.count(), x, x, [most](T v) { return v > most ? most : v < -most ? -most : v; });
    });
  }
}

}  // namespace orrery::optim
