// Chapter 3. f32 compared with f64, at a draw and at its neighbours.
#include "autograd/check/rounding.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "autograd/observer.h"
#include "core/dtype.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr double tolerance = 1e-6, zero_tolerance = 1e-4;
constexpr i64 neighbours = 16;
constexpr double step = 0x1p-9, spreads = 4;
// f32 rounds one number by at most 2^-24 of itself; sums, and steps that follow one another, make more of it.
constexpr double rounding_of_terms = 0x1p-18, small_step = 0x1p-20;
constexpr int small_steps = 4;
// Far from 0 the steps of an operation that follow one another multiply the rounding of those before; with large
// weights, so do layers.
constexpr double amplified = 4, amplified_by_weights = 64;
constexpr double largest_in_f32 = 0x1p100;  // beyond it, products of few numbers may overflow
constexpr double underflow = 0x1p-100;      // f32 takes a result below 2^-126 for 0; what follows may multiply that

// Of each leaf's gradient in order, then of the output: what f64 says, and f32 minus that, in f64.
struct Comparison {
  std::vector<Tensor> exact, difference;
};

// x (1 + step u) with u uniform in [-1, 1), element by element.
Tensor moved(const Tensor& x, Rng& rng, double step) {
  Tensor result = x.clone();
  dispatch_floating(x.dtype(), "moved", [&](auto zero) {
    auto* numbers = result.write<decltype(zero)>();
    for (i64 i = 0; i < x.count(); ++i)
      numbers[i] = static_cast<decltype(zero)>(numbers[i] * (1 + step * (2 * rng.uniform() - 1)));
  });
  return result;
}

std::vector<Tensor> gradients_and_output(const Checkable& f, const Tensor& y, const Tensor& dy) {
  std::vector<Tensor> result = gradients_of(f, dy.to(y.dtype()));
  result.push_back(y);
  for (Tensor& x : result) x = x.to(f64);
  return result;
}

// Of the elements that are finite.
double norm(const Tensor& x) {
  double squares = 0;
  for (i64 i = 0; i < x.count(); ++i)
    if (std::isfinite(x.at(i))) squares += x.at(i) * x.at(i);
  return std::sqrt(squares);
}

// The largest norm among what operations return and what they add to gradients. A norm grows with the number of terms
// as the rounding of their sum does. What is not finite, such as a masked score, adds no rounding.
class LargestNorm final : public ForwardingObserver {
 public:
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    ForwardingObserver::forward_ended(name, inputs, outputs);
    for (const Tensor& y : outputs) add(y);
  }
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    ForwardingObserver::contribution(node, input, g);
    if (g.defined()) add(g);
  }
  void add(const Tensor& x) { result = std::max(result, norm(x)); }

  double result = 0;
};

// The function in f32 and in f64, built once and computed at a draw and at its neighbours.
class Precisions {
 public:
  Precisions(const Sample& sample, u64 seed, double factor)
      : single_(sample.build(f32, seed)), exact_(sample.build(f64, seed)), seed_(seed) {
    check(single_.leaves.size() == exact_.leaves.size(), "f32", "the sample has other inputs than in f64");
    for (const NamedParameter& leaf : single_.leaves) draw_.push_back(leaf.value.value() * factor);
  }
  const Checkable& exact() const { return exact_; }

  /// Neighbour 0 is the draw itself.
  Comparison compare_at(i64 neighbour) {
    const Tensor dy = move_to(neighbour);
    const Tensor y = single_.output().value(), y_exact = exact_.output().value();
    Comparison result{gradients_and_output(exact_, y_exact, dy), gradients_and_output(single_, y, dy)};
    for (size_t i = 0; i < result.exact.size(); ++i) result.difference[i] = result.difference[i] - result.exact[i];
    return result;
  }

  /// By how much each gradient in f64, and the output, changes if every input and dL/dy changes by 2^-20 of itself.
  std::vector<double> small_changes(const std::vector<Tensor>& exact) {
    Rng rng(31 * seed_);
    std::vector<double> largest(exact.size());
    for (int i = 0; i < small_steps; ++i) {
      const Tensor dy = moved(move_to(0).to(f64), rng, small_step);
      for (NamedParameter& leaf : exact_.leaves)
        copy_into(leaf.value.mutable_value(), moved(leaf.value.value(), rng, small_step));
      const std::vector<Tensor> found = gradients_and_output(exact_, exact_.output().value(), dy);
      for (size_t tensor = 0; tensor < found.size(); ++tensor)
        largest[tensor] = std::max(largest[tensor], largest_magnitude({found[tensor] - exact[tensor]}));
    }
    return largest;
  }

  /// The largest norm of a tensor in the f64 pass at the draw.
  double largest_norm() {
    const Tensor dy = move_to(0).to(f64);
    return orrery::largest_norm(exact_, dy);
  }

 private:
  // Sets the leaves, and returns dy.
  Tensor move_to(i64 neighbour) {
    Rng around(29 * seed_, static_cast<u64>(neighbour) << 40);
    for (size_t i = 0; i < draw_.size(); ++i) {
      const Tensor x = neighbour > 0 ? moved(draw_[i], around, step) : draw_[i];
      copy_into(single_.leaves[i].value.mutable_value(), x);
      copy_into(exact_.leaves[i].value.mutable_value(), x.to(f64));
    }
    if (!dy_.defined()) {
      Rng numbers(23 * seed_);
      dy_ = randn(exact_.output().shape(), numbers);
    }
    return neighbour > 0 ? moved(dy_, around, step) : dy_;
  }

  Checkable single_, exact_;
  const u64 seed_;
  std::vector<Tensor> draw_;  // the values of the leaves, in f32
  Tensor dy_;
};

// By how much an element differs at the neighbours of a draw.
struct Around {
  double mean = 0, spread = 0;
  double median = 0;  // of the magnitudes
};

Around differences_around(const std::vector<Comparison>& around, size_t tensor, i64 element) {
  const double n = static_cast<double>(around.size());
  Around result;
  std::vector<double> magnitudes;
  for (const Comparison& at : around) {
    const double difference = at.difference[tensor].at(element);
    result.mean += difference / n;
    magnitudes.push_back(std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::fabs(difference));
  }
  double squares = 0;
  for (const Comparison& at : around) squares += std::pow(at.difference[tensor].at(element) - result.mean, 2);
  result.spread = std::sqrt(squares / (n - 1));
  const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  result.median = *middle;
  return result;
}

double part_of(double error, double scale) { return error == 0 ? 0 : error / scale; }

std::string digits(double x) {
  std::ostringstream text;
  text << std::setprecision(2) << x;
  return text.str();
}

class PrecisionJudge {
 public:
  PrecisionJudge(const Sample& sample, u64 seed, double factor)
      : precisions_(sample, seed, factor),
        f_(precisions_.exact()),
        is_far_(factor != 1),
        at_draw_(precisions_.compare_at(0)) {}

  SinglePrecision run() {
    if (is_far_ && !(largest_norm() <= largest_in_f32)) {
      result_.beyond_f32 = true;
      return std::move(result_);
    }
    for (size_t i = 0; i < f_.leaves.size(); ++i) judge_gradient(i);
    const size_t output = f_.leaves.size();
    const double scale = largest_magnitude({at_draw_.exact[output]});
    result_.output_error = part_of(error_of(output), scale);
    judge(output, "the output", {scale, tolerance, "max |y|"});
    return std::move(result_);
  }

 private:
  // Errors up to `part` of `scale` are accepted without looking at neighbours, and so is what is lost where products
  // underflow.
  struct Bound {
    double scale, part;
    const char* unit;
    double error() const { return std::max(part * scale, underflow); }
  };

  double error_of(size_t tensor) const { return largest_magnitude({at_draw_.difference[tensor]}); }

  double largest_norm() {
    if (!(largest_norm_ > 0)) largest_norm_ = precisions_.largest_norm();
    return largest_norm_;
  }

  double small_change_of(size_t tensor) {
    if (small_changes_.empty()) small_changes_ = precisions_.small_changes(at_draw_.exact);
    return small_changes_[tensor];
  }

  // The most that rounding can explain.
  double rounding_of(size_t tensor) {
    const double rounding = std::max(rounding_of_terms * largest_norm(), small_change_of(tensor));
    if (!is_far_) return rounding;
    const bool has_weights = f_.inputs < f_.leaves.size();
    return rounding * (has_weights ? amplified_by_weights : amplified);
  }

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
    if (std::isfinite(error) && error <= bound.error()) return;
    std::string where;
    if (std::isfinite(error)) {
      if (!is_far_ || error > rounding_of(tensor)) where = mistake_around(tensor, name, bound);
      if (where.empty()) {
        ++result_.rounded;
        return;
      }
    }
    result_.problem += (result_.problem.empty() ? "" : "\n") + name + " is off by " + part(error, bound) + " of " +
                       bound.unit + ", more than " + digits(bound.part) + ", and not by rounding" + where;
  }

  // The first element whose differences around the draw are not rounding; "" if there is none.
  std::string mistake_around(size_t tensor, const std::string& name, const Bound& bound) {
    while (static_cast<i64>(around_.size()) < neighbours)
      around_.push_back(precisions_.compare_at(static_cast<i64>(around_.size()) + 1));
    const Tensor& exact = at_draw_.exact[tensor];
    for (i64 j = 0; j < exact.count(); ++j) {
      const Around found = differences_around(around_, tensor, j);
      const auto here = [&] { return ": around this draw " + place(name, exact.shape(), j) + " is off by "; };
      if (!is_far_ && !(std::fabs(found.mean) <= bound.error() + spreads * found.spread) &&
          !(std::fabs(found.mean) <= small_change_of(tensor) + spreads * found.spread))
        return here() + part(found.mean, bound) + " +- " + part(found.spread, bound);
      if (!(found.median <= bound.error()) && !(found.median <= rounding_of(tensor)))
        return here() + "at least " + part(found.median, bound) + " in half of the cases; rounding explains " +
               part(rounding_of(tensor), bound);
    }
    return "";
  }

  static std::string part(double error, const Bound& bound) { return digits(part_of(error, bound.scale)); }

  Precisions precisions_;
  const Checkable& f_;  // for the names of its leaves, and which are declared zero
  const bool is_far_;
  const Comparison at_draw_;
  // Made when they are needed.
  std::vector<Comparison> around_;
  std::vector<double> small_changes_;
  double largest_norm_ = 0;
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

bool is_zero(const Tensor& x) { return largest_magnitude({x}) <= (x.dtype() == f32 ? 1e-3 : 1e-14); }

double largest_norm(const Checkable& f, const Tensor& dy) {
  LargestNorm found;
  found.add(dy);
  for (const NamedParameter& leaf : f.leaves) found.add(leaf.value.value());
  const ObserverScope scope(found);
  gradients_of(f, dy);
  return found.result;
}

SinglePrecision compare_precisions(const Sample& sample, u64 seed, double factor) {
  return PrecisionJudge(sample, seed, factor).run();
}

}  // namespace orrery
