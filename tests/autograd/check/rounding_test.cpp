// Chapter 3. Tests of f32 beside f64: rounding passes, and mistakes do not, however small their leaf is.
#include "autograd/check/rounding.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/apply.h"
#include "autograd/check/mistakes.h"
#include "autograd/check/mutation.h"
#include "autograd/check/proof.h"
#include "autograd/check/proof_parts.h"
#include "autograd/check/samples.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// a + 2^-22 b: beside da, db is far below 1e-6.
struct SmallSecond {
  static constexpr std::string_view name = "small_second";
  std::function<Tensor(const Tensor&)> in_f32;  // of b's gradient
  Tensor forward(const Tensor& a, const Tensor& b) { return a + b * 0x1p-22; }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    const Tensor g = dy * 0x1p-22, wrong = dy.dtype() == f32 ? in_f32(g) : g;
    if (wrong.defined()) dx.add(1, wrong);
  }
};

SinglePrecision of_small_leaf(const std::function<Tensor(const Tensor&)>& in_f32) {
  const auto f = [=](const Variable& a, const Variable& b) { return apply(SmallSecond{in_f32}, a, b); };
  return compare_precisions(sample_of("small", f, {{3, 4}, {3, 4}}), 1);
}

// Changes one contribution of every backward pass in f32, as if its operation were wrong there.
class WrongInF32 final : public Observer {
 public:
  WrongInF32(const Change& change, i64 target) : change_(change), target_(target) {}
  bool changes_contributions() const override { return true; }
  void forward_begins(std::string_view, std::span<const Variable* const>) override { seen_ = 0; }
  void contribution(const Node&, size_t, Tensor& g) override {
    if (g.dtype() == f32 && seen_++ == target_) g = change_.apply(g, Tensor());
  }

 private:
  const Change change_;
  const i64 target_;
  i64 seen_ = 0;
};

// y = x; backward gives change(dL/dy).
struct Through {
  static constexpr std::string_view name = "through";
  std::function<Tensor(const Tensor&)> change;
  Tensor forward(const Tensor& x) { return x * 1.0; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, change(dy)); }
};

// x with `bits` binary digits.
Tensor rounded(const Tensor& x, int bits) {
  Tensor result = x.clone();
  for (i64 i = 0; i < x.count(); ++i) {
    int exponent = 0;
    const double fraction = std::frexp(x.at(i), &exponent);
    result.set(i, std::ldexp(std::round(std::ldexp(fraction, bits)), exponent - bits));
  }
  return result;
}

// x^2 and 1 / x, which round in f32, and only there, what backward reads.
struct CoarseSquare {
  static constexpr std::string_view name = "coarse_square";
  int bits;
  Saved x;
  Tensor forward(const Tensor& in) {
    x = in;
    return in * in;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * (dy.dtype() == f32 ? rounded(x, bits) : x.get()) * 2.0); }
};
struct CoarseReciprocal {
  static constexpr std::string_view name = "coarse_reciprocal";
  int bits;
  Saved y;
  Tensor forward(const Tensor& x) { return y = full({}, 1.0, x.dtype()) / x; }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor value = dy.dtype() == f32 ? rounded(y, bits) : y.get();
    dx.add(0, dy * value * value * -1.0);
  }
};

template <class Operation> std::string problem_with(int bits, u64 seed) {
  const auto f = [bits](const Variable& x) { return apply(Operation{bits, {}}, x); };
  return compare_precisions(sample_of("coarse", f, {{3, 4}}), seed).problem;
}

// Its first output is not finite, as masked scores are not; the second, x, has a gradient rounded in f32.
struct BesideInfinity {
  static constexpr std::string_view name = "beside_infinity";
  int bits;
  std::array<Tensor, 2> forward(const Tensor& x) {
    return {full(x.shape(), -std::numeric_limits<double>::infinity(), x.dtype()), x * 1.0};
  }
  void backward(const std::array<Tensor, 2>& dy, Grads& dx) {
    dx.add(0, dy[1].dtype() == f32 ? rounded(dy[1], bits) : dy[1] * 1.0);
  }
};

// The sample that computes f(x), for this x.
template <class F> Sample at(const F& f, const Tensor& x) {
  return {"sample", "", [=](Dtype dtype, u64) { return checkable(f, {x.to(dtype)}); }, {}};
}

// A class that is nearly certain: in f32, only about four digits of p - 1 are right.
const auto certain = [](const Variable& x) { return cross_entropy(x, Tensor::of<i32>({1}, {1})); };
const Tensor nearly_certain = Tensor::of<double>({1, 2}, {0.3, 9.1});

std::vector<Tensor> gradients_in_f32(const Sample& sample) {
  const Checkable f = sample.build(f32, 1);
  Rng rng(23);
  return gradients_of(f, randn(f.output().shape(), rng));
}

// The largest change of a leaf's gradient, relative to the leaf's largest element. Leaves do not count if they are
// declared zero, or if their largest element is below `least` times that of all leaves.
double change_of(const Sample& sample, const std::vector<Tensor>& right, const std::vector<Tensor>& wrong,
                 double least) {
  const Checkable f = sample.build(f32, 1);
  const double largest_scale = largest_magnitude(right);
  double largest = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const bool zero =
        std::any_of(f.zeros.begin(), f.zeros.end(), [&](const auto& z) { return z.name == f.leaves[i].name; });
    const double scale = largest_magnitude({right[i]});
    if (!zero && scale > 0 && scale >= least * largest_scale)
      largest = std::max(largest, largest_magnitude({wrong[i] - right[i]}) / scale);
  }
  return largest;
}

}  // namespace

TEST_CASE("promise 8: a leaf is judged by its own scale, a millionth of its neighbour's") {
  const SinglePrecision right = of_small_leaf([](const Tensor& g) { return g; });
  CHECK_MESSAGE(right.problem == "", right.problem);
  CHECK(right.gradient_error < 1e-6);
  using Wrong = std::function<Tensor(const Tensor&)>;
  const std::vector<Wrong> all_wrong{[](const Tensor& g) { return g * -1.0; }, [](const Tensor&) { return Tensor(); },
                                     [](const Tensor& g) { return g * 1.00001; },
                                     [](const Tensor& g) {
                                       Tensor one_wrong = g.clone();
                                       one_wrong.write<float>()[7] *= -1;
                                       return one_wrong;
                                     }};
  for (const Wrong& wrong : all_wrong) {
    const SinglePrecision found = of_small_leaf(wrong);
    CHECK_MESSAGE(found.problem.starts_with("input 1 is off by "), found.problem);
    CHECK(found.worst_at == "input 1");
    CHECK(found.gradient_error > 9e-6);
  }
  CHECK(of_small_leaf(all_wrong.back()).problem.find("input 1[1, 3] is off by") != std::string::npos);
}

TEST_CASE("promise 8: what cancelling terms leave is rounding, and a mistake there is still one") {
  const Sample sample = at(certain, nearly_certain);
  const SinglePrecision right = compare_precisions(sample, 1);
  CHECK_MESSAGE(right.problem == "", right.problem);
  CHECK(right.gradient_error > 1e-6);
  CHECK(right.rounded == 1);
  const auto negated = [](const Variable& x) {
    const auto f = [](const Tensor& g) { return g.dtype() == f32 ? g * -1.0 : g; };
    return certain(apply(Through{f}, x));
  };
  const SinglePrecision found = compare_precisions(at(negated, nearly_certain), 1);
  CHECK(found.problem.starts_with("input 0 is off by 2 of its max |g|, more than 1e-06, and not by rounding"));
}

TEST_CASE("promise 8: an error in the same direction everywhere may be a constant that f32 rounds, up to a limit") {
  const auto problem = [](double error) {
    const auto f = [=](const Variable& x) {
      const auto wrong = [=](const Tensor& g) { return g.dtype() == f32 ? g * (1 + error) : g; };
      return exp(apply(Through{wrong}, x));
    };
    return compare_precisions(at(f, Tensor::of<double>({1}, {60})), 1).problem;
  };
  CHECK(problem(1e-5) == "");  // x changed by 2^-20 of itself changes the gradient by 6e-5 of itself
  CHECK(problem(1e-4).starts_with("input 0 is off by 0.0001 of its max |g|, more than 1e-06, and not by rounding"));
}

TEST_CASE("promise 8: numbers rounded to bf16, fp16 or TF32, or a coarse reciprocal, in f32 only") {
  constexpr int bf16 = 8, fp16_and_tf32 = 11, coarse = 12, all = 24;
  for (u64 seed = 1; seed <= 20; ++seed) {
    for (const int bits : {bf16, fp16_and_tf32, coarse}) {
      CAPTURE(bits);
      CAPTURE(seed);
      CHECK(problem_with<CoarseSquare>(bits, seed) != "");
      CHECK(problem_with<CoarseReciprocal>(bits, seed) != "");
    }
    CHECK(problem_with<CoarseSquare>(all, seed) == "");
    CHECK(problem_with<CoarseReciprocal>(all, seed) == "");
  }
}

TEST_CASE("promise 8: an infinite number in a pass does not excuse what is rounded beside it") {
  const auto problem = [](int bits) {
    const auto f = [bits](const Variable& x) { return apply(BesideInfinity{bits}, x)[1]; };
    return compare_precisions(sample_of("beside", f, {{3, 4}}), 1).problem;
  };
  constexpr int bf16 = 8, all = 24;
  CHECK(problem(bf16).starts_with("input 0 is off by"));
  CHECK(problem(all) == "");
}

TEST_CASE("promise 8: far: saturated functions leave rounding alone, and what f32 cannot hold is not compared") {
  const auto far = [](const auto& f, double x) {
    return compare_precisions(at(f, Tensor::of<double>({1}, {x})), 1, 8);
  };
  const SinglePrecision saturated = far([](const Variable& x) { return tanh(x); }, 1.25);
  CHECK_MESSAGE(saturated.problem == "", saturated.problem);
  CHECK(saturated.gradient_error > 0.1);  // of a gradient of 8e-9
  CHECK(saturated.rounded == 1);
  const auto negated = [](const Variable& x) {
    const auto f = [](const Tensor& g) { return g.dtype() == f32 ? g * -1.0 : g; };
    return tanh(apply(Through{f}, x));
  };
  CHECK(far(negated, 0.5).problem != "");
  const SinglePrecision too_large = far([](const Variable& x) { return exp(x); }, 24);
  CHECK(too_large.beyond_f32);
  CHECK(too_large.problem == "");
}

TEST_CASE("promise 8: an output that is wrong in f32, and NaN") {
  const auto shifted = [](const Variable& x) { return x.dtype() == f32 ? x * 1.00001 : x * 1.0; };
  CHECK(compare_precisions(at(shifted, nearly_certain), 1).problem.find("the output is off by") != std::string::npos);
  const auto none = [](const Variable& x) {
    const auto f = [](const Tensor& g) { return g.dtype() == f32 ? g * std::nan("") : g; };
    return apply(Through{f}, x);
  };
  CHECK(compare_precisions(at(none, nearly_certain), 1).problem.starts_with("input 0 is off by inf of its max |g|"));
}

TEST_CASE("a sample that has other leaves in f32 is refused") {
  const Sample other{"other",
                     "",
                     [](Dtype dtype, u64) {
                       const std::vector<Tensor> two{zeros({2}, dtype), zeros({2}, dtype)};
                       return dtype == f32 ? checkable([](const Variable& x, const Variable& y) { return x + y; }, two)
                                           : checkable([](const Variable& x) { return x * 1.0; }, {two[0]});
                     },
                     {}};
  CHECK_THROWS_WITH_AS(compare_precisions(other, 1), "f32: the sample has other inputs than in f64", Error);
}

TEST_CASE("promise 8: mistakes of four kinds, in turn, are found in the contributions of operations in f32") {
  i64 tried = 0;
  for (const Sample& sample : operation_samples()) {
    if (parts::longest_leaf(sample.build(f64, 1)) >= parts::long_tensor)
      continue;  // takes long, and the table has shorter samples of the operation
    CAPTURE(sample.name);
    CAPTURE(sample.variant);
    std::vector<Change> changes = all_changes();
    std::erase_if(changes,
                  [](const Change& c) { return c.name != "x -1" && c.name != "dropped" && c.name != "x 1.0001"; });
    changes.push_back({"x rounded to bf16", [](const Tensor&, const Tensor&) { return true; },
                       [](const Tensor& g, const Tensor&) { return rounded(g, 8); }});
    REQUIRE(changes.size() == 4);
    const Checkable f = sample.build(f64, 1);
    Recorder recorder(f, changes);
    {
      const ObserverScope scope(recorder);
      gradients_of(f, cotangent_of(f.output().shape(), 1));
    }
    const std::vector<Tensor> right = gradients_in_f32(sample);
    for (size_t target = 0; target < recorder.contributions.size(); ++target) {
      const Change& change = changes[static_cast<size_t>(tried) % changes.size()];  // in turn
      CAPTURE(change.name);
      CAPTURE(target);
      WrongInF32 mistake(change, static_cast<i64>(target));
      const ObserverScope scope(mistake);
      // Where gradients are small beside the largest numbers of the pass, f32 may round as coarsely.
      const bool rounds = change.name == "x rounded to bf16";
      if (change_of(sample, right, gradients_in_f32(sample), rounds ? 0.01 : 0) < (rounds ? 1e-4 : 1e-5)) continue;
      ++tried;
      CHECK(compare_precisions(sample, 1).problem != "");
    }
  }
  CHECK(tried > 300);
}
