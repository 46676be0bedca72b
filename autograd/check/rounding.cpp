// Chapter 3. f32 compared with f64, at a draw and at its neighbours.
//
// Serves: autograd/check/proof.h
#include "autograd/check/rounding.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr double tolerance = 1e-6, zero_tolerance = 1e-4;
constexpr i64 neighbours = 16;
constexpr double step = 0x1p-9, spreads = 4;

// Of each leaf's gradient in order, then of the output: what f64 says, and f32 minus that, in f64.
struct Comparison {
  std::vector<Tensor> exact, difference;
};

// x (1 + step u) with u uniform in [-1, 1), element by element.
Tensor moved(const Tensor& x, Rng& rng) {
  Tensor result = x.clone();
  for (i64 i = 0; i < x.count(); ++i) result.set(i, x.at(i) * (1 + step * (2 * rng.uniform() - 1)));
  return result;
}

std::vector<Tensor> gradients_and_output(const Checkable& f, const Tensor& y, const Tensor& dy) {
  std::vector<Tensor> result = gradients_of(f, dy.to(y.dtype()));
  result.push_back(y);
  for (Tensor& x : result) x = x.to(f64);
  return result;
}

// The function in f32 and in f64, built once and computed at a draw and at its neighbours.
class Precisions {
 public:
  Precisions(const Sample& sample, u64 seed)
      : single_(sample.build(f32, seed)), exact_(sample.build(f64, seed)), seed_(seed) {
    check(single_.leaves.size() == exact_.leaves.size(), "f32", "the sample has other inputs than in f64");
    for (const NamedParameter& leaf : single_.leaves) draw_.push_back(leaf.value.value().clone());
  }
  const Checkable& exact() const { return exact_; }

  /// Neighbour 0 is the draw itself.
  Comparison compare_at(i64 neighbour) {
    Rng around(29 * seed_, static_cast<u64>(neighbour) << 40);
    for (size_t i = 0; i < draw_.size(); ++i) {
      const Tensor x = neighbour > 0 ? moved(draw_[i], around) : draw_[i];
      copy_into(single_.leaves[i].value.mutable_value(), x);
      copy_into(exact_.leaves[i].value.mutable_value(), x.to(f64));
    }
    const Tensor y = single_.output().value(), y_exact = exact_.output().value();
    if (!dy_.defined()) {
      Rng numbers(23 * seed_);
      dy_ = randn(y.shape(), numbers);
    }
    const Tensor dy = neighbour > 0 ? moved(dy_, around) : dy_;
    Comparison result{gradients_and_output(exact_, y_exact, dy), gradients_and_output(single_, y, dy)};
    for (size_t i = 0; i < result.exact.size(); ++i) result.difference[i] = result.difference[i] - result.exact[i];
    return result;
  }

 private:
  Checkable single_, exact_;
  const u64 seed_;
  std::vector<Tensor> draw_;  // the values of the leaves, in f32
  Tensor dy_;
};

// An element whose differences are not rounding.
struct Mistake {
  i64 element = -1;  // there is none
  double mean = 0, spread = 0;
};

Mistake mistake_around(const std::vector<Comparison>& around, size_t tensor, double bound) {
  const double n = static_cast<double>(around.size());
  for (i64 j = 0; j < around[0].difference[tensor].count(); ++j) {
    double mean = 0, squares = 0;
    for (const Comparison& at : around) mean += at.difference[tensor].at(j) / n;
    for (const Comparison& at : around) squares += std::pow(at.difference[tensor].at(j) - mean, 2);
    const double spread = std::sqrt(squares / (n - 1));
    if (!(std::fabs(mean) <= bound + spreads * spread)) return {j, mean, spread};
  }
  return {};
}

double part_of(double error, double scale) { return error == 0 ? 0 : error / scale; }

std::string digits(double x) {
  std::ostringstream text;
  text << std::setprecision(2) << x;
  return text.str();
}

class PrecisionJudge {
 public:
  PrecisionJudge(const Sample& sample, u64 seed)
      : precisions_(sample, seed), f_(precisions_.exact()), at_draw_(precisions_.compare_at(0)) {}

  SinglePrecision run() {
    for (size_t i = 0; i < f_.leaves.size(); ++i) judge_gradient(i);
    const size_t output = f_.leaves.size();
    const double scale = largest_magnitude({at_draw_.exact[output]});
    result_.output_error = part_of(error_of(output), scale);
    judge(output, "the output", {scale, tolerance, "max |y|"});
    return std::move(result_);
  }

 private:
  // Errors up to `part` of `scale` are accepted without looking at neighbours.
  struct Bound {
    double scale, part;
    const char* unit;
  };

  double error_of(size_t tensor) const { return largest_magnitude({at_draw_.difference[tensor]}); }

  void judge_gradient(size_t leaf) {
    const std::string& name = f_.leaves[leaf].name;
    const bool zero =
        std::any_of(f_.zeros.begin(), f_.zeros.end(), [&](const DeclaredZero& z) { return z.name == name; });
    const double scale = zero ? largest_magnitude({at_draw_.exact.begin(), at_draw_.exact.end() - 1})
                              : largest_magnitude({at_draw_.exact[leaf]});
    const double part = part_of(error_of(leaf), scale);
    if (part > result_.gradient_error) {
      result_.gradient_error = part;
      result_.worst_at = name;
    }
    judge(leaf, name, zero ? Bound{scale, zero_tolerance, "max |g|"} : Bound{scale, tolerance, "its max |g|"});
  }

  void judge(size_t tensor, const std::string& name, const Bound& bound) {
    const double error = error_of(tensor);
    if (std::isfinite(error) && error <= bound.part * bound.scale) return;
    while (static_cast<i64>(around_.size()) < neighbours)
      around_.push_back(precisions_.compare_at(static_cast<i64>(around_.size()) + 1));
    const Mistake mistake = mistake_around(around_, tensor, bound.part * bound.scale);
    if (mistake.element < 0) {
      ++result_.rounded;
      return;
    }
    result_.problem +=
        (result_.problem.empty() ? "" : "\n") + name + " is off by " + digits(part_of(error, bound.scale)) + " of " +
        bound.unit + ", more than " + digits(bound.part) + ", and not by rounding: around this draw " +
        place(name, at_draw_.exact[tensor].shape(), mistake.element) + " is off by " +
        digits(part_of(mistake.mean, bound.scale)) + " +- " + digits(part_of(mistake.spread, bound.scale));
  }

  Precisions precisions_;
  const Checkable& f_;  // for the names of its leaves, and which are declared zero
  const Comparison at_draw_;
  std::vector<Comparison> around_;  // made when it is needed
  SinglePrecision result_;
};

}  // namespace

double largest_magnitude(const std::vector<Tensor>& tensors) {
  double result = 0;
  for (const Tensor& x : tensors) {
    for (i64 i = 0; i < x.count(); ++i) {
      const double magnitude = std::fabs(x.at(i));
      if (!(magnitude <= result)) result = std::isnan(magnitude) ? std::numeric_limits<double>::infinity() : magnitude;
    }
  }
  return result;
}

SinglePrecision compare_precisions(const Sample& sample, u64 seed) { return PrecisionJudge(sample, seed).run(); }

}  // namespace orrery
