// Chapter 3. Is the derivative right? Compares what backward says with what the function does.
//
// L(x) = <u, f(x)> with a random u; the analytic gradient is backward's, the numeric one the 4-point stencil
//   dL/dx_i = (8 (L(x + h) - L(x - h)) - (L(x + 2h) - L(x - 2h))) / 12h,     error O(h^4), noise 1e-11 at h = 1e-3
// in f64, coordinate by coordinate. A plain sum in place of u would hide most wrong backwards of softmax and layer
// norm: their outputs add up to a constant, so both gradients vanish. A zero gradient is a
// failure too, unless it is declared with its reason. Where a coordinate fails, two smaller steps decide whether a
// derivative exists there at all: a coordinate at a kink (relu at 0) is skipped and counted. More than 5 % of such
// coordinates are a failure; so of fewer than 20 coordinates, none may be skipped. A sample (below) whose numbers
// happen to show nothing, because of such kinks or because every relu is off, is drawn again.
//   auto report = gradcheck([](const Variable& x) { return gelu(x); }, {randn({3, 4}, rng, f64)});
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace orrery {

class Leaf;

struct GradcheckOptions {
  double h = 1e-3;
  double atol = 1e-9, rtol = 1e-7;
  u64 seed = 1;
  i64 coordinates = 0;  ///< at most this many of each input, drawn at random; 0 means every one
  i64 directions = 0;   ///< also this many random directions of norm 1 through all inputs together
};

/// An input whose gradient is known to be zero, and why. Any other gradient of zero is a failure.
struct DeclaredZero {
  std::string name, reason;
};

/// One coordinate (or direction) where analytic and numeric gradient disagree.
struct GradcheckFailure {
  std::string name;
  i64 index = 0;      ///< element in row order, -1 for a direction
  std::string where;  ///< "weight[2, 3]"
  double analytic = 0, numeric = 0;
};

/// The checks that a wrong backward may fail.
enum class GradientCheck {
  none,              ///< it failed none
  coordinate,        ///< backward differs from the slope of a coordinate
  direction,         ///< backward differs from the slope along a random direction
  missing_gradient,  ///< backward gives no gradient, but the numeric one is not zero
  shape,             ///< a gradient has another shape than its input
  error,             ///< backward throws
  vacuous,           ///< the numeric gradient is zero everywhere, which was not declared
  declared_zero,     ///< what is declared zero is not
  unlisted_leaf,     ///< backward reaches a parameter that is not among the leaves
  kinks,             ///< too many coordinates are where no derivative exists
  repeatable,        ///< a second evaluation gives other bits
  finite,            ///< f's value is not finite
};
/// "missing gradient"; "" for none.
std::string_view name_of(GradientCheck check);

/// What is wrong with a whole input, or with f itself.
struct GradcheckProblem {
  GradientCheck check;
  std::string text;
};

struct GradcheckReport {
  bool ok = false;
  i64 inputs = 0;
  i64 coordinates = 0;       ///< compared or skipped, directions included
  i64 skipped = 0;           ///< coordinates at a kink, where no derivative exists
  double worst_error = 0;    ///< largest |analytic - numeric|, kinks excluded
  std::string worst_at;      ///< "weight[2, 3]"
  double gradient_norm = 0;  ///< of the analytic gradient, all inputs together
  std::vector<DeclaredZero> zeros;
  std::vector<GradcheckFailure> failures;
  std::vector<GradcheckProblem> problems;
  std::string message;  ///< empty when ok; else what is wrong, where, and a constant ratio if there is one
  explicit operator bool() const { return ok; }
  /// Which check found the mistake; `none` when ok.
  GradientCheck failed_check() const;
  /// The text for `message`, from `problems` and `failures`.
  std::string describe() const;
};
std::ostream& operator<<(std::ostream& out, const GradcheckReport& report);

/// What stands behind the padding lengths of sequences, and must reach nothing.
struct Padding {
  /// A leaf [B, T, ...], and how many positions of each row are real; without lengths, a table of embeddings, whose row
  /// 0 is that of the padding id.
  struct Place {
    std::string leaf;
    std::vector<i32> lengths{};
  };
  std::vector<Place> places{};
  std::vector<i32> output{};  ///< how many positions of each row of the output are real; empty: all of it is
};

/// What is checked: a function of leaves it captured. Every leaf is perturbed in place, and f called again.
struct Checkable {
  std::function<Variable()> output;
  Parameters leaves;
  std::vector<DeclaredZero> zeros{};
  /// For what can be saved in a file: saves the parameters to a path, overwrites them in memory, and loads them again.
  std::function<void(const std::string& path)> through_file{};
  /// The same function, with other inputs in place of the first leaves; not every sample has it.
  std::function<Variable(std::vector<Variable> inputs)> of_inputs{};
  size_t inputs = 0;  ///< how many leaves `of_inputs` replaces
  Padding padding{};  ///< for functions of padded sequences
  /// Walks the tape of the output in place of `backward`: an engine with a mistake (autograd/check/faulty_engine.h).
  std::function<void(const Variable& y, const Tensor& dy)> engine{};
  /// Walks the tape of y, if it has one.
  void walk(const Variable& y, const Tensor& dy) const {
    if (!y.wants_gradient()) return;
    if (engine)
      engine(y, dy);
    else
      backward(y, dy);
  }
};

/// The derivative of L at one point along one line.
struct NumericSlope {
  double central;  ///< the 4-point stencil
  double jump;     ///< derivative from the right minus derivative from the left, O(h^2) where L is smooth
};
/// Slopes by leaf number, element and step. They depend on the function alone, so a check of the same function with
/// another backward can reuse them, and then costs only one pass.
using NumericSlopes = std::map<std::tuple<i64, i64, double>, NumericSlope>;

/// "weight[2, 3]" for element number `index` of a tensor.
std::string place(const std::string& name, const Shape& shape, i64 index);

/// "parameter gate", or "a parameter of shape [4, 3] without a name, made after gate.bias", since members are made in
/// the order in which their class declares them.
std::string description_of(const Leaf& leaf, const Parameters& listed);

/// The random u of L = <u, y> for a y of this shape, f64: the dL/dy that backward is given.
Tensor cotangent_of(const Shape& shape, u64 seed);

/// Checks every leaf of `f`. f must give the same bits each time it is called, recorded or not.
/// Values and gradients of the leaves are restored, also when f throws. A parameter that backward reaches but `leaves`
/// does not list is a failure; so is a listed one that should have a gradient and gets none. `known`, if not null,
/// holds slopes of the same f, leaves and options, and receives those computed here. Errors: a leaf that is not a
/// parameter, or that is not f64.
GradcheckReport gradcheck(const Checkable& f, const GradcheckOptions& options = {}, NumericSlopes* known = nullptr);

/// f(x...), each moved, so that f may be the last to hold it. Error: f takes another number of Variables.
template <class F> Variable call_with(const F& f, std::vector<Variable> x) {
  const auto needs = [&](size_t n) { check(x.size() == n, "gradcheck", "f takes ", n, " inputs, got ", x.size()); };
  if constexpr (std::is_invocable_v<F, const std::vector<Variable>&>) {
    return f(std::move(x));
  } else if constexpr (std::is_invocable_v<F, Variable, Variable, Variable>) {
    needs(3);
    return f(std::move(x[0]), std::move(x[1]), std::move(x[2]));
  } else if constexpr (std::is_invocable_v<F, Variable, Variable>) {
    needs(2);
    return f(std::move(x[0]), std::move(x[1]));
  } else {
    static_assert(std::is_invocable_v<F, Variable>, "f must take one to three Variables, or a std::vector<Variable>");
    needs(1);
    return f(std::move(x[0]));
  }
}

/// A function of one, two or three Variables, or of a std::vector<Variable>. What takes one is no template: it is not
/// compiled again for each f. f is taken by value, so that the bare name of a function will do.
struct VariableFunction {
  template <class F>
  VariableFunction(F f)
      : call([f = std::move(f)](std::vector<Variable> x) -> Variable { return call_with(f, std::move(x)); }) {}
  std::function<Variable(std::vector<Variable> inputs)> call;
};

/// The Checkable of f(inputs...): inputs become leaves named "input 0", "input 1", ... Leaves that are frozen are left
/// out: no gradient leads to them.
Checkable checkable(const VariableFunction& f, const std::vector<Tensor>& inputs, const Parameters& leaves = {},
                    std::vector<DeclaredZero> zeros = {});

/// Checks f(inputs...) in every input, and in `leaves`, which f also reads.
GradcheckReport gradcheck(const VariableFunction& f, const std::vector<Tensor>& inputs, const Parameters& leaves = {},
                          const GradcheckOptions& options = {});

/// One row of the table of proofs. `make` builds the function to check, in f64 or f32, with inputs and weights drawn
/// from a seed, and dropout masks too, except in rows of long tensors.
struct Sample {
  std::string name;     ///< the operation or layer, as it stands in ops.h or nn/*.h
  std::string variant;  ///< what is special here: "broadcast", "size 0", "causal"
  std::function<Checkable(Dtype, u64 seed)> make;
  GradcheckOptions options{};
  Checkable build(Dtype dtype, u64 seed = 1) const { return make(dtype, seed); }
};

/// The check of one draw of a sample.
struct DrawnReport {
  GradcheckReport report;
  u64 seed = 1;     ///< of the numbers that were checked
  i64 redrawn = 0;  ///< draws before it that showed nothing
};

/// Checks `sample` with the numbers of `seed`, which also replaces the seed of its options. A draw shows nothing if too
/// many coordinates are at kinks, or the numeric gradient of a leaf is zero everywhere, and nothing else is wrong. That
/// is not a mistake of backward, so other numbers are drawn, up to 8 times. A function that shows nothing with any of
/// them fails. `known` holds the slopes of the draw that was checked.
DrawnReport gradcheck(const Sample& sample, u64 seed, NumericSlopes* known = nullptr);

}  // namespace orrery
