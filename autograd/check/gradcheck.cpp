// Chapter 3. The gradient checker: perturbs each coordinate in place, and compares.
//
// y = f(x), u ~ N(0, 1), L = <u, y>. The stencil is applied to y, element by element, and only then multiplied by u:
// outputs that a coordinate does not touch cancel exactly, and the noise stays at 1e-11 whatever the size of L.
#include "autograd/check/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>

#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "core/kernels/reduce.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// std::to_string would show 3e-8 as 0.000000.
std::string text_of(double x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

// A leaf under check. Restores its value and gradient when destroyed.
class CheckedLeaf {
 public:
  explicit CheckedLeaf(const NamedParameter& leaf)
      : name(leaf.name),
        leaf(leaf.value),
        original(leaf.value.value().clone()),
        gradient_before_(leaf.value.gradient()) {
    this->leaf.clear_gradient();
  }
  ~CheckedLeaf() {
    restore();
    leaf.mutable_gradient() = gradient_before_;
  }
  CheckedLeaf(const CheckedLeaf&) = delete;
  CheckedLeaf& operator=(const CheckedLeaf&) = delete;

  // Writes back the bits the value had.
  void restore() { copy_into(leaf.mutable_value(), original); }
  i64 count() const { return original.count(); }
  // dL/dx_i, 0 where backward did not reach the leaf.
  double gradient_at(i64 i) const { return analytic.defined() ? analytic.at(i) : 0.0; }

  const std::string name;
  Variable leaf;
  const Tensor original;
  Tensor analytic;  // not defined when backward did not reach the leaf

 private:
  Tensor gradient_before_;
};
using CheckedLeaves = std::vector<std::unique_ptr<CheckedLeaf>>;

// Every leaf once. Errors: one that is not a parameter, or not f64.
CheckedLeaves checked_leaves(const Parameters& leaves) {
  CheckedLeaves checked;
  for (const NamedParameter& leaf : leaves) {
    check(leaf.value.defined() && leaf.value.is_leaf(), "gradcheck", leaf.name, " is not a parameter");
    check(leaf.value.dtype() == f64, "gradcheck", leaf.name, " is ", leaf.value.dtype(),
          "; a numeric gradient needs f64, so convert first");
    const bool known =
        std::any_of(checked.begin(), checked.end(), [&](const auto& h) { return h->leaf.node() == leaf.value.node(); });
    if (!known) checked.push_back(std::make_unique<CheckedLeaf>(leaf));
  }
  return checked;
}

// Describes the parameters that backward reaches but that are not checked. At once: a parameter that f makes anew in
// each call is freed with the tape.
class UnlistedLeaves final : public ForwardingObserver {
 public:
  UnlistedLeaves(const CheckedLeaves& checked, const Parameters& listed) : checked_(checked), listed_(listed) {}

  void leaf_reached(const Leaf& leaf) override {
    ForwardingObserver::leaf_reached(leaf);
    const bool is_checked = std::any_of(checked_.begin(), checked_.end(),
                                        [&](const auto& other) { return other->leaf.node().get() == &leaf; });
    if (!is_checked) descriptions.push_back(description_of(leaf, listed_));
  }

  std::vector<std::string> descriptions;

 private:
  const CheckedLeaves& checked_;
  const Parameters& listed_;
};

// What is perturbed: element `index` of leaf number `leaf`, or direction number `index`, of all leaves.
struct Line {
  i64 leaf = 0;  // -1 for a direction
  i64 index = 0;
  std::string name, where;
};

class Checker {
 public:
  Checker(const Checkable& f, const GradcheckOptions& options, NumericSlopes* known)
      : f_(f), options_(options), leaves_(checked_leaves(f.leaves)), known_(known) {}

  GradcheckReport run() {
    find_analytic();
    for (const DeclaredZero& zero : f_.zeros) {
      const bool known =
          std::any_of(leaves_.begin(), leaves_.end(), [&](const auto& leaf) { return leaf->name == zero.name; });
      if (!known) problem(GradientCheck::declared_zero, zero.name + " is declared zero, but there is no such input");
    }
    for (size_t i = 0; i < leaves_.size(); ++i) check_leaf(static_cast<i64>(i));
    for (i64 i = 0; i < options_.directions; ++i) check_direction(i);
    if (report_.skipped * 20 > report_.coordinates) {
      problem(GradientCheck::kinks,
              std::to_string(report_.skipped) + " of " + std::to_string(report_.coordinates) +
                  " coordinates stand at a kink (or f is too steep for the step h); at most 5 % may be "
                  "skipped. If a random "
                  "input happens to stand there, another seed moves it");
    }
    report_.inputs = static_cast<i64>(leaves_.size());
    report_.zeros = f_.zeros;
    report_.message = report_.describe();
    report_.ok = report_.message.empty();
    return std::move(report_);
  }

 private:
  void problem(GradientCheck check, std::string text) { report_.problems.push_back({check, std::move(text)}); }
  double tolerance(double numeric) const { return options_.atol + options_.rtol * std::fabs(numeric); }
  bool near(double a, double numeric) const { return std::fabs(a - numeric) <= tolerance(numeric); }

  // f's value without a tape. Cloned where f returned a view of a leaf, which is about to change.
  Tensor value() const {
    const NoGradient no_gradient;
    Tensor y = f_.output().value();
    check(!y_.defined() || (y.shape() == y_.shape() && y.dtype() == f64), "gradcheck",
          "f's output changed its shape or dtype");
    return y.sole_owner() ? y : y.clone();
  }

  void find_analytic();
  void check_leaf(i64 number);
  void check_declared_zero(const CheckedLeaf& leaf, const DeclaredZero& zero, double largest,
                           const std::string& largest_at);
  std::vector<i64> coordinates_of(const CheckedLeaf& leaf);
  void check_direction(i64 number);
  template <class Move> NumericSlope slope(const Move& move, double h) const;
  template <class Move> NumericSlope known_slope(const Line& line, const Move& move, double h) const;
  template <class Move> std::optional<double> compare(const Move& move, double analytic, const Line& line);

  const Checkable& f_;
  const GradcheckOptions options_;
  CheckedLeaves leaves_;
  NumericSlopes* known_;
  Tensor y_, cotangent_;                  // f at the leaves' own values, and u
  Rng rng_{options_.seed, u64{1} << 40};  // of what is chosen at random: far from the numbers of u
  GradcheckReport report_;
};

void Checker::find_analytic() {
  UnlistedLeaves unlisted(leaves_, f_.leaves);
  {
    const Variable y = f_.output();
    check(y.defined() && y.dtype() == f64, "gradcheck", "f's output must be f64");
    y_ = y.value().clone();
    cotangent_ = cotangent_of(y_.shape(), options_.seed);
    const ObserverScope scope(unlisted);
    f_.walk(y, cotangent_);
  }
  double squares = 0;
  for (const auto& leaf : leaves_) {
    leaf->analytic = leaf->leaf.gradient();
    if (leaf->analytic.defined() && leaf->analytic.shape() != leaf->original.shape()) {
      std::ostringstream text;
      text << leaf->name << " has shape " << leaf->original.shape() << ", its gradient " << leaf->analytic.shape();
      problem(GradientCheck::shape, text.str());
      leaf->analytic = Tensor();
    }
    if (leaf->analytic.defined()) squares += sum_of_squares(leaf->analytic);
  }
  report_.gradient_norm = std::sqrt(squares);
  for (const std::string& leaf : unlisted.descriptions) {
    problem(GradientCheck::unlisted_leaf,
            "backward reached " + leaf + ", which is not among the leaves: visit does not name it");
  }
  if (!same_bits(y_, value()))
    problem(GradientCheck::repeatable, "f is not repeatable: a second evaluation gave other bits");
  const double* y = y_.data<double>();
  if (!std::all_of(y, y + y_.count(), [](double v) { return std::isfinite(v); }))
    problem(GradientCheck::finite, "f's value is not finite");
}

// The slopes at t = 0 of L(x + t d), where move(t) puts the leaves at x + t d, and y_ is the output at t = 0. `central`
// is the stencil of gradcheck.h. `jump` is the slope from the right minus the slope from the left, with error O(h^2):
//   (-3 L(x) + 4 L(x + h d) - L(x + 2h d)) / 2h    and    (3 L(x) - 4 L(x - h d) + L(x - 2h d)) / 2h
template <class Move> NumericSlope Checker::slope(const Move& move, double h) const {
  const auto at = [&](double t) {
    move(t);
    return value();
  };
  const Tensor left2 = at(-2 * h), left1 = at(-h), right1 = at(h), right2 = at(2 * h);
  const double *l2 = left2.data<double>(), *l1 = left1.data<double>(), *r1 = right1.data<double>(),
               *r2 = right2.data<double>();
  const double *y = y_.data<double>(), *u = cotangent_.data<double>();
  const i64 n = y_.count();
  const double central =
      kernels::chunked_sum<double>(n, [=](i64 i) { return u[i] * (8 * (r1[i] - l1[i]) - (r2[i] - l2[i])); });
  const double jump = kernels::chunked_sum<double>(
      n, [=](i64 i) { return u[i] * (4 * ((r1[i] - y[i]) + (l1[i] - y[i])) - ((r2[i] - y[i]) + (l2[i] - y[i]))); });
  return {central / (12 * h), jump / (2 * h)};
}

template <class Move> NumericSlope Checker::known_slope(const Line& line, const Move& move, double h) const {
  if (!known_) return slope(move, h);
  const auto found = known_->find({line.leaf, line.index, h});
  if (found != known_->end()) return found->second;
  return (*known_)[{line.leaf, line.index, h}] = slope(move, h);
}

// Compares along one line; the numeric derivative, or nothing at a kink.
template <class Move> std::optional<double> Checker::compare(const Move& move, double analytic, const Line& line) {
  ++report_.coordinates;
  double numeric = known_slope(line, move, options_.h).central;
  if (!near(analytic, numeric)) {
    // Backward is wrong, or L is too steep for h, or a kink lies within 2h; smaller steps decide. Near a kink, their
    // slopes disagree. At a kink, they agree on the mean of both sides, but the difference of the sides does not
    // shrink. A difference that is small compared with the error cannot be its cause. Where f ends, as a root does at
    // 0, there is no slope either.
    const NumericSlope middle = known_slope(line, move, options_.h / 4),
                       fine = known_slope(line, move, options_.h / 16);
    const double error = std::fabs(analytic - fine.central), difference = std::fabs(middle.central - fine.central);
    const bool disagree = difference > std::max(tolerance(fine.central), 0.01 * error);
    const bool two_sided =
        std::fabs(fine.jump) > std::max({tolerance(fine.central), 0.01 * error, 0.25 * std::fabs(middle.jump)});
    if (!std::isfinite(fine.central) || (error > tolerance(fine.central) && (disagree || two_sided))) {
      ++report_.skipped;
      return std::nullopt;
    }
    numeric = fine.central;
  }
  const double error = std::fabs(analytic - numeric);
  if (!(error <= report_.worst_error)) {
    report_.worst_error = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    report_.worst_at = line.where;
  }
  if (!near(analytic, numeric)) {
    const i64 index = line.leaf < 0 ? -1 : line.index;
    report_.failures.push_back({line.name, index, line.where, analytic, numeric});
  }
  return numeric;
}

// Every coordinate, or a random choice that always holds the one with the largest gradient: a choice of zeros only
// (rows of an embedding that no id selects) would look like a vacuous check.
std::vector<i64> Checker::coordinates_of(const CheckedLeaf& leaf) {
  std::vector<i64> all(static_cast<size_t>(leaf.count()));
  std::iota(all.begin(), all.end(), i64{0});
  if (options_.coordinates <= 0 || options_.coordinates >= leaf.count()) return all;
  const auto largest = std::max_element(all.begin(), all.end(), [&](i64 a, i64 b) {
    return std::fabs(leaf.gradient_at(a)) < std::fabs(leaf.gradient_at(b));
  });
  std::swap(all[0], *largest);
  for (i64 i = 1; i < options_.coordinates; ++i) {
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(rng_.integer(i, leaf.count()))]);
  }
  all.resize(static_cast<size_t>(options_.coordinates));
  return all;
}

void Checker::check_leaf(i64 number) {
  CheckedLeaf& leaf = *leaves_[static_cast<size_t>(number)];
  const size_t failures_before = report_.failures.size();
  double largest = 0;
  std::string largest_at;
  i64 compared = 0;
  const std::vector<i64> coordinates = coordinates_of(leaf);
  for (const i64 i : coordinates) {
    const double x = leaf.original.data<double>()[i];
    const auto move = [&](double t) { leaf.leaf.mutable_value().write<double>()[i] = x + t; };
    const std::string where = place(leaf.name, leaf.original.shape(), i);
    const std::optional<double> numeric = compare(move, leaf.gradient_at(i), {number, i, leaf.name, where});
    leaf.restore();
    if (!numeric) continue;
    ++compared;
    if (std::fabs(*numeric) > largest) {
      largest = std::fabs(*numeric);
      largest_at = where;
    }
  }
  if (coordinates.empty()) return;
  if (compared == 0)
    problem(GradientCheck::kinks, leaf.name + ": every coordinate stands at a kink, so nothing was checked");
  const auto declared =
      std::find_if(f_.zeros.begin(), f_.zeros.end(), [&](const DeclaredZero& zero) { return zero.name == leaf.name; });
  if (declared == f_.zeros.end() && compared > 0 && largest <= 10 * options_.atol) {
    problem(
        GradientCheck::vacuous,
        leaf.name +
            ": the numeric gradient is zero everywhere, so nothing was checked (declare it if it is meant to be zero)");
  }
  if (declared != f_.zeros.end()) check_declared_zero(leaf, *declared, largest, largest_at);
  if (!leaf.analytic.defined() && report_.failures.size() > failures_before) {
    report_.failures.resize(failures_before);
    problem(GradientCheck::missing_gradient, "no gradient reached " + leaf.name +
                                                 ", but the numeric one is not zero (" + text_of(largest) + " at " +
                                                 largest_at + ")");
  }
}

void Checker::check_declared_zero(const CheckedLeaf& leaf, const DeclaredZero& zero, double largest,
                                  const std::string& largest_at) {
  const std::string declared = leaf.name + ": is declared zero (" + zero.reason + "), but ";
  if (largest > 10 * options_.atol)
    return problem(GradientCheck::declared_zero, declared + "is " + text_of(largest) + " at " + largest_at);
  for (i64 i = 0; i < leaf.count(); ++i) {
    if (std::fabs(leaf.gradient_at(i)) <= options_.atol) continue;
    return problem(GradientCheck::declared_zero,
                   declared + "backward says otherwise at " + place(leaf.name, leaf.original.shape(), i));
  }
}

// A random direction d of norm 1 through all leaves: analytic <gradient, d>.
void Checker::check_direction(i64 number) {
  std::vector<Tensor> direction;
  double squares = 0, analytic = 0;
  for (const auto& leaf : leaves_) {
    direction.push_back(randn(leaf->original.shape(), rng_, f64));
    squares += sum_of_squares(direction.back());
    if (leaf->analytic.defined()) analytic += dot(leaf->analytic, direction.back());
  }
  if (squares == 0) return;
  const double norm = std::sqrt(squares);
  const auto move = [&](double t) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      copy_into(leaves_[i]->leaf.mutable_value(), leaves_[i]->original + direction[i] * (t / norm));
    }
  };
  const std::string name = "direction " + std::to_string(number);
  compare(move, analytic / norm, {-1, number, name, name});
  for (const auto& leaf : leaves_) leaf->restore();
}

}  // namespace

std::string description_of(const Leaf& leaf, const Parameters& listed) {
  if (!leaf.label.empty()) return leaf.origin();
  const NamedParameter* before = nullptr;
  for (const NamedParameter& other : listed)
    if (other.value.node()->number < leaf.number &&
        (!before || before->value.node()->number < other.value.node()->number))
      before = &other;
  std::ostringstream text;
  text << "a parameter of shape " << leaf.outputs[0].shape << " without a name, made "
       << (before ? "after " + before->name : "before all others");
  return text.str();
}

std::string place(const std::string& name, const Shape& shape, i64 index) {
  std::string indices;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (!indices.empty()) indices.insert(0, ", ");
    indices.insert(0, std::to_string(index % shape[axis]));
    index /= shape[axis];
  }
  return name + '[' + indices + ']';
}

Tensor cotangent_of(const Shape& shape, u64 seed) {
  Rng rng(seed);
  return randn(shape, rng, f64);
}

Checkable checkable(const VariableFunction& f, const std::vector<Tensor>& inputs, const Parameters& leaves,
                    std::vector<DeclaredZero> zeros) {
  Checkable result{.output = {}, .leaves = {}, .zeros = std::move(zeros), .of_inputs = f.call, .inputs = inputs.size()};
  std::vector<Variable> x;
  for (size_t i = 0; i < inputs.size(); ++i) {
    x.push_back(parameter(inputs[i].clone(), "input " + std::to_string(i)));
    result.leaves.push_back({x.back().name(), x.back()});
  }
  for (const NamedParameter& leaf : leaves)
    if (!leaf.value.is_frozen()) result.leaves.push_back(leaf);
  result.output = [call = f.call, x = std::move(x)] { return call(x); };
  return result;
}

GradcheckReport gradcheck(const Checkable& f, const GradcheckOptions& options, NumericSlopes* known) {
  check(static_cast<bool>(f.output), "gradcheck", "needs a function to check");
  return Checker(f, options, known).run();
}

GradcheckReport gradcheck(const VariableFunction& f, const std::vector<Tensor>& inputs, const Parameters& leaves,
                          const GradcheckOptions& options) {
  return gradcheck(checkable(f, inputs, leaves), options);
}

namespace {

// A draw is rejected only if nothing worse was found, and a coordinate counts as a kink only where the numeric slopes
// show one. So a wrong backward that differs at a compared coordinate with a derivative fails at once.
bool shows_nothing(const GradcheckReport& report) {
  return !report.problems.empty() && report.failures.empty() &&
         std::all_of(report.problems.begin(), report.problems.end(), [](const GradcheckProblem& problem) {
           return problem.check == GradientCheck::kinks || problem.check == GradientCheck::vacuous;
         });
}

}  // namespace

DrawnReport gradcheck(const Sample& sample, u64 seed, NumericSlopes* known) {
  constexpr i64 most_redrawn = 8;
  constexpr u64 between = 0xD1B54A32D192ED03;  // odd, so that no two draws are the same
  DrawnReport drawn{.report = {}, .seed = seed};
  for (;; ++drawn.redrawn, drawn.seed += between) {
    if (known) known->clear();
    GradcheckOptions options = sample.options;
    options.seed = drawn.seed;
    drawn.report = gradcheck(sample.build(f64, drawn.seed), options, known);
    if (!shows_nothing(drawn.report) || drawn.redrawn == most_redrawn) return drawn;
  }
}

}  // namespace orrery
