// Chapter 3. The parts of a proof about what a training meets and random numbers do not: the dL/dy of real losses,
// inputs that were computed, inputs of 0, and steps.
//
// Backward is linear in dL/dy, so for any fixed c and a random s
//   dL/dx at c = dL/dx at s + dL/dx at c - s
// where s and c - s are as random as what the other parts draw. So a mistake that only c shows makes a difference.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>

#include "autograd/apply.h"
#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "core/tensor_ops.h"

namespace orrery::parts {
namespace {

// Multiplies the chosen numbers of x.
void scale_some(Tensor& x, double factor, const std::function<bool(i64)>& chosen) {
  dispatch_floating(x.dtype(), "scale_some", [&](auto zero) {
    using T = decltype(zero);
    T* numbers = x.write<T>();
    for (i64 i = 0; i < x.count(); ++i)
      if (chosen(i)) numbers[i] *= static_cast<T>(factor);
  });
}

// dL/dy is scale times base.
struct Scaled {
  const char* name;
  double scale;
};
struct Cotangents {
  Tensor base;
  std::vector<Scaled> scales;
};

// The same everywhere: a loss itself, a sum, a mean. With zeros: a loss with a mask, which leaves out single numbers
// and the whole second half. Small and large: a mean over many tokens, a scaled loss, a gradient that explodes.
std::vector<Cotangents> of_losses(const Shape& shape, Dtype dtype, u64 seed) {
  const Tensor random = cotangent(shape, dtype, seed + 1);
  const i64 n = random.count();
  Tensor masked = random.clone();
  scale_some(masked, 0, [n](i64 i) { return 2 * i > n || i % 3 == 1; });
  const double mean = -1.0 / static_cast<double>(std::max<i64>(n, 1));
  return {{full(shape, 1.0, dtype), {{"1 everywhere", 1}, {"the same everywhere", mean}}},
          {masked, {{"0 in places", 1}}},
          {random, {{"small", 0x1p-20}, {"large", 0x1p12}}}};
}

// The largest numbers of each leaf's gradient in several passes, and by how much a sum of rounded numbers may be off.
class Tolerance {
 public:
  explicit Tolerance(Dtype dtype) : relative_(dtype == f32 ? 1e-3 : 1e-10), of_all_(dtype == f32 ? 1e-4 : 1e-12) {}
  void note(const std::vector<Tensor>& gradients) {
    largest_.resize(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i)
      largest_[i] = std::max(largest_[i], largest_magnitude({gradients[i]}));
    all_ = std::max(all_, *std::max_element(largest_.begin(), largest_.end()));
  }
  // A gradient that is 0 in exact arithmetic keeps the rounding of what led to it, hence the term for all leaves.
  bool near(const Tensor& a, const Tensor& b, size_t leaf) const {
    return largest_magnitude({a - b}) <= relative_ * largest_[leaf] + of_all_ * all_;
  }

 private:
  const double relative_, of_all_;
  std::vector<double> largest_;
  double all_ = 0;
};

}  // namespace

ProofPart prove_linear(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = built(sample, dtype, seed);
    const Tensor s = cotangent(f.output().shape(), dtype, seed);
    const std::vector<Tensor> at_s = gradients_of(f, s);
    if (at_s.empty()) break;
    for (const Cotangents& c : of_losses(s.shape(), dtype, seed)) {
      const std::vector<Tensor> at_rest = gradients_of(f, c.base - s);
      for (const Scaled& scaled : c.scales) {
        std::vector<Tensor> at_c = gradients_of(f, c.base * scaled.scale);
        for (Tensor& g : at_c) scale_in_place(g, 1 / scaled.scale);
        Tolerance tolerance(dtype);
        tolerance.note(at_s);
        tolerance.note(at_rest);
        tolerance.note(at_c);
        for (size_t i = 0; i < at_c.size(); ++i)
          if (!tolerance.near(at_c[i], at_s[i] + at_rest[i], i))
            return part("linear", std::string("dL/dy is ") + scaled.name + ": the gradient of " + f.leaves[i].name +
                                      " is not that of its parts, added up");
      }
    }
  }
  return part("linear", "", "dL/dy of 1, the same everywhere, with zeros, small and large: sums of others");
}

namespace {

// factor x. Not the library's own, in which a mutant may have a mistake.
struct Times {
  static constexpr std::string_view name = "times";
  double factor;
  Tensor forward(const Tensor& x) { return x * factor; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * factor); }
};

bool finite(const Tensor& x) { return std::isfinite(largest_magnitude({x})); }

// Compares y = f(2 x_source(0), 2 x_source(1), ...), which nobody holds once it has been used, with f of inputs of the
// same values that are leaves, each by itself. Returns what is wrong, or nothing if f has no finite value there. What f
// throws is a failure of the part.
std::optional<std::string> wrong_composition(Checkable& f, const std::vector<size_t>& source, const Tensor& dy) {
  std::vector<Variable> own, half, computed, inputs;
  for (const size_t from : source) {
    own.push_back(parameter(f.leaves[from].value.value().clone()));
    half.push_back(parameter(f.leaves[from].value.value() * 0.5));
    computed.push_back(apply(Times{2}, half.back()));
  }
  const auto gradient_of = [](const Variable& x) {
    return x.gradient().defined() ? x.gradient() : zeros(x.shape(), x.dtype());
  };
  {
    const Variable y = f.of_inputs(own);
    check(y.shape() == dy.shape(), "composed", "has an output of shape ", y.shape(), " for one call, ", dy.shape(),
          " for another of inputs of the same shapes");
    if (!finite(y.value())) return std::nullopt;
    run_backward(y, dy);
  }
  const std::vector<Tensor> of_weights = take_gradients(f.leaves);
  for (const size_t from : source) inputs.push_back(computed[from]);
  computed.clear();
  const Variable y = apply(Times{1}, f.of_inputs(std::move(inputs)));
  run_backward(y, dy);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != i) continue;
    Tensor expected = zeros(half[i].shape(), half[i].dtype());
    for (size_t j = 0; j < source.size(); ++j)
      if (source[j] == i) add_in_place(expected, gradient_of(own[j]) * 2.0);
    if (!alike(gradient_of(half[i]), expected)) return f.leaves[i].name;
  }
  const std::vector<Tensor> now = take_gradients(f.leaves);
  for (size_t i = source.size(); i < now.size(); ++i)
    if (!alike(now[i], of_weights[i])) return f.leaves[i].name;
  return "";
}

// The inputs of one shape as one tensor, for each shape that several inputs have. An operation may have no value for
// the numbers of one of them, such as a logarithm of a negative number, so each may be the one.
struct SameInput {
  std::vector<size_t> members;
  std::vector<size_t> source(size_t inputs, size_t chosen) const {
    std::vector<size_t> result(inputs);
    for (size_t i = 0; i < inputs; ++i) result[i] = i;
    for (const size_t member : members) result[member] = chosen;
    return result;
  }
};
std::vector<SameInput> inputs_of_one_shape(const Checkable& f) {
  std::vector<SameInput> groups;
  for (size_t i = 0; i < f.inputs; ++i) {
    const auto shape_of = [&](size_t leaf) { return f.leaves[leaf].value.shape(); };
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const SameInput& g) { return shape_of(g.members[0]) == shape_of(i); });
    if (group == groups.end())
      groups.push_back({{i}});
    else
      group->members.push_back(i);
  }
  std::erase_if(groups, [](const SameInput& group) { return group.members.size() < 2; });
  return groups;
}

}  // namespace

ProofPart prove_composed(const Sample& sample, u64 seed) {
  size_t same = 0;
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = sample.build(dtype, seed);
    if (!f.of_inputs || f.inputs == 0) return part("composed", "", "not tried: no inputs that could be computed");
    const Tensor y = f.output().value(), dy = cotangent(y.shape(), dtype, seed);
    const std::optional<std::string> alone = wrong_composition(f, SameInput{}.source(f.inputs, 0), dy);
    if (!alone && finite(y))
      return part("composed", "not finite for other leaves of the values that gave finite numbers");
    if (alone && !alone->empty())
      return part("composed", "another gradient for " + *alone + " where the inputs are computed, as 2 x");
    for (const SameInput& group : inputs_of_one_shape(f)) {
      for (const size_t chosen : group.members) {
        const std::optional<std::string> wrong = wrong_composition(f, group.source(f.inputs, chosen), dy);
        if (!wrong) continue;
        if (!wrong->empty()) return part("composed", "another gradient for " + *wrong + " where inputs are one tensor");
        ++same;
        break;
      }
    }
  }
  return part("composed", "",
              same == 0 ? "inputs computed, as 2 x" : "inputs computed, as 2 x, and one tensor for several");
}

namespace {

// Which leaves are changed: of `count`, all, or one.
struct Choice {
  size_t count = 0;
  std::optional<size_t> only{};
};

// The sample with about half of the numbers of the chosen leaves multiplied by `factor`: always of the first.
Sample with_some_times(const Sample& sample, double factor, const Choice& choice) {
  Sample result = sample;
  result.make = [make = sample.make, factor, choice](Dtype dtype, u64 seed) {
    Checkable f = make(dtype, seed);
    for (size_t leaf = 0; leaf < choice.count; ++leaf) {
      Rng rng(37 * seed + leaf);
      if (!choice.only || *choice.only == leaf)
        scale_some(f.leaves[leaf].value.mutable_value(), factor, [&](i64 i) { return rng.uniform() < 0.5 || i == 0; });
    }
    return f;
  };
  return result;
}

// What is wrong where numbers are 0, or nearly; nothing if f has no finite value there. Nearly 0, a difference quotient
// would reach to the other side of a pole, so there f32 and f64 are only compared.
std::optional<std::string> wrong_near_zero(const Sample& sample, bool slopes, u64 seed) {
  constexpr double largest_in_f32 = 0x1p100;
  const Checkable f = built(sample, f64, seed);
  if (!finite(f.output().value())) return std::nullopt;
  GradcheckOptions options = sample.options;
  options.seed = seed;
  options.coordinates = options.coordinates > 0 ? 2 : 6;
  options.directions = 0;
  const std::string wrong = slopes ? wrong_gradients(f, options) : "";
  if (!wrong.empty()) return wrong;
  const Tensor dy = cotangent(f.output().shape(), f64, seed);
  for (const Tensor& g : gradients_of(f, dy))
    if (!(largest_magnitude({g}) <= largest_in_f32)) return "";  // as at the root of 0
  return compare_precisions(sample, seed).problem;
}

}  // namespace

// Products of several weights that are nearly 0 underflow in f32, so only inputs are.
ProofPart prove_small(const Sample& sample, u64 seed) {
  const Checkable f = sample.build(f64, seed);
  if (longest_leaf(f) >= long_tensor) return part("small", "", "not tried: shorter tensors show it");
  std::string tried;
  for (const auto& [factor, what] : {std::pair{0.0, "0"}, {0x1p-66, "2^-66 of themselves"}}) {
    Choice choice{factor == 0 ? f.leaves.size() : f.inputs};
    bool finite_somewhere = false;
    for (size_t leaf = 0; leaf <= choice.count && !finite_somewhere; ++leaf) {  // all, else the first that can be
      if (leaf > 0) choice.only = leaf - 1;
      const auto wrong = wrong_near_zero(with_some_times(sample, factor, choice), factor == 0, seed);
      if (wrong && !wrong->empty()) return part("small", std::string("with inputs of ") + what + ":\n" + *wrong);
      finite_somewhere = wrong.has_value();
    }
    if (finite_somewhere) tried += (tried.empty() ? "some inputs " : ", some ") + std::string(what);
  }
  return part("small", "", tried.empty() ? "not tried: no finite value there" : tried);
}

// Along its gradient g, a step of length h must change L by -h |g|. Each parameter takes it alone.
ProofPart prove_step(const Sample& sample, u64 seed) {
  constexpr double h = 1e-6;
  Checkable f = built(sample, f64, seed);
  if (f.inputs >= f.leaves.size()) return {};
  const Tensor y = f.output().value().clone(), dy = cotangent(y.shape(), f64, seed);
  const std::vector<Tensor> gradients = gradients_of(f, dy);
  size_t moved = 0;
  for (size_t i = f.inputs; i < f.leaves.size(); ++i) {
    NamedParameter& leaf = f.leaves[i];
    const bool stays = std::any_of(f.zeros.begin(), f.zeros.end(), [&](const auto& z) { return z.name == leaf.name; });
    if (stays || leaf.value.value().count() == 0) continue;
    const double norm = std::sqrt(sum_of_squares(gradients[i]));
    if (norm == 0) return part("step", leaf.name + " never moves: its gradient is 0, which is not declared");
    const Tensor before = leaf.value.value().clone();
    add_in_place(leaf.value.mutable_value(), gradients[i] * (-h / norm));
    const double change = dot(dy, f.output().value() - y);  // recorded, as in training
    copy_into(leaf.value.mutable_value(), before);
    std::ostringstream text;
    text << "a step of " << leaf.name << " along its gradient changes L by " << change << " instead of " << -h * norm;
    if (!(change <= -0.5 * h * norm)) return part("step", text.str());
    ++moved;
  }
  return part("step", "", std::to_string(moved) + " parameters move, and L falls with each");
}

}  // namespace orrery::parts
