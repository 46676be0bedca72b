// Chapter 3. Tests of the parts about what a training meets: each finds mistakes that random numbers do not show.
#include <doctest/doctest.h>

#include <optional>
#include <thread>

#include "autograd/check/proof_parts.h"
#include "autograd/ops.h"
#include "nn/check/proof.h"
#include "nn/check/samples.h"
#include "optim/optim.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;

namespace {

// x^2, right except for what `wrong` says of x and dy: there the gradient is doubled.
using Wrong = std::function<bool(const Tensor& x, const Tensor& dy)>;
Sample square_wrong_where(const Wrong& wrong, const Shape& shape = {3, 4}) {
  const hidden::Square::Rule rule = [wrong](const Tensor& x, const Tensor& dy, const Tensor& g, Grads& dx) {
    dx.add(0, wrong(x, dy) ? g * 2.0 : g);
  };
  return sample_of("square", [rule](const Variable& x) { return apply(hidden::Square{rule}, x); }, {shape});
}

i64 count(const Tensor& x, const std::function<bool(double)>& holds) {
  i64 result = 0;
  for (i64 i = 0; i < x.count(); ++i) result += holds(x.at(i));
  return result;
}

// The parts that fail, and that the parts which a proof had before all pass.
std::string failed_parts(const Sample& sample) {
  std::string names;
  for (const ProofPart& part : prove(sample, {.mutants = false}).parts)
    if (!part.ok) names += (names.empty() ? "" : ", ") + part.name;
  return names;
}

// y_i = x_i x_{i-1}. Its backward writes to the saved x, if it may, while it reads it.
struct Neighbour {
  static constexpr std::string_view name = "neighbour";
  std::optional<Saved> saved{};
  Tensor forward(const Tensor& in) {
    saved = Saved(in);
    Tensor y = in.clone();
    dispatch_floating(in.dtype(), name, [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = 1; i < in.count(); ++i) y.write<T>()[i] = in.data<T>()[i] * in.data<T>()[i - 1];
    });
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor x = saved->get();
    saved.reset();
    Tensor g = dx.reuse(x);
    dispatch_floating(x.dtype(), name, [&](auto zero) {
      using T = decltype(zero);
      const T *in = x.data<T>(), *d = dy.data<T>();
      T* out = g.write<T>();
      for (i64 i = 0; i < x.count(); ++i)
        out[i] = (i > 0 ? d[i] * in[i - 1] : d[0]) + (i + 1 < x.count() ? d[i + 1] * in[i + 1] : 0);
    });
    dx.add(0, g);
  }
};

// a b, with a gradient that is wrong if both are one tensor.
struct ProductOfTwo {
  static constexpr std::string_view name = "product_of_two";
  Saved a{}, b{};
  Tensor forward(const Tensor& x, const Tensor& y) {
    a = x;
    b = y;
    return x * y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy * b.get());
    if (address_of(a.get()) != address_of(b.get())) dx.add(1, dy * a.get());
  }
};

// x W^T by a copy of W that was made earlier.
struct ProductWithCopy {
  static constexpr std::string_view name = "product_with_copy";
  Tensor copy;
  Saved x{};
  Tensor forward(const Tensor& in, const Tensor&) {
    x = in;
    return matmul(in, copy, Trans::b);
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, matmul(dy, copy));
    dx.add(1, matmul(dy, x.get(), Trans::a));
  }
};

// A linear map that packs its weight in its first pass of training, and computes with that for ever.
struct PackedOnce : nn::Module {
  Variable weight;
  std::shared_ptr<Tensor> packed = std::make_shared<Tensor>();
  explicit PackedOnce(Rng& rng) : weight(parameter(randn({3, 4}, rng))) {}
  void visit(nn::Visitor& v) override { v("weight", weight); }
  Variable operator()(const Variable& x) const {
    if (!gradients_are_recorded()) return matmul(x, weight, Trans::b);
    if (!packed->defined()) *packed = weight.value().clone();
    return apply(ProductWithCopy{*packed}, x, weight);
  }
};

}  // namespace

TEST_CASE("promise 7: linear: wrong for the dy of a loss, a mean, a mask, small and large ones") {
  const auto right = [](const Tensor&, const Tensor&) { return false; };
  CHECK(failed_parts(square_wrong_where(right)).empty());
  const auto fails = [](const std::function<bool(const Tensor& dy)>& wrong, const std::string& name) {
    const Sample sample = square_wrong_where([wrong](const Tensor&, const Tensor& dy) { return wrong(dy); });
    CHECK(failed_parts(sample) == "linear");
    CHECK(parts::prove_linear(sample, 1).detail ==
          "dL/dy is " + name + ": the gradient of input 0 is not that of its parts, added up");
  };
  fails([](const Tensor& dy) { return count(dy, [](double v) { return v == 1; }) == dy.count(); }, "1 everywhere");
  fails(
      [](const Tensor& dy) {
        return dy.at(0) != 1 && count(dy, [&](double v) { return v == dy.at(0); }) == dy.count();
      },
      "the same everywhere");
  fails(
      [](const Tensor& dy) {
        const i64 zeros = count(dy, [](double v) { return v == 0; });
        return zeros > 0 && zeros < dy.count();
      },
      "0 in places");
  fails(
      [](const Tensor& dy) { return dy.count() == count(dy, [](double v) { return v != 0 && std::fabs(v) < 1e-3; }); },
      "small");
  fails([](const Tensor& dy) { return count(dy, [](double v) { return std::fabs(v) > 100; }) > 0; }, "large");
}

TEST_CASE("promise 7: composed: an operation that writes over the x that it reads") {
  const Sample sample = sample_of("neighbour", [](const Variable& x) { return apply(Neighbour{}, x); }, {{6}});
  CHECK(failed_parts(sample) == "composed");
  CHECK(parts::prove_composed(sample, 1).detail ==
        "another gradient for input 0 where the inputs are computed, as 2 x");
}

TEST_CASE("promise 7: composed: one tensor for both inputs") {
  const auto product = [](const Variable& a, const Variable& b) { return apply(ProductOfTwo{}, a, b); };
  CHECK(failed_parts(sample_of("product", product, {{3, 4}, {3, 4}})) == "composed");
  CHECK(failed_parts(sample_of("product", product, {{3, 4}, {4}})).empty());
  const auto third = [product](const std::vector<Variable>& x) { return product(x[0], x[2]) + exp(x[1]); };
  CHECK(failed_parts(sample_of("product", third, {{3, 4}, {3, 4}, {3, 4}})) == "composed");
}

TEST_CASE("composed: a function that throws, or has no finite value, for leaves of its own numbers") {
  const auto outcome = [](const std::function<Variable(const Variable&)>& others) {
    Sample sample = sample_of("square", [](const Variable& x) { return x * x; }, {{3, 4}});
    sample.make = [make = sample.make, others](Dtype dtype, u64 seed) {
      Checkable f = make(dtype, seed);
      f.of_inputs = [others](std::vector<Variable> x) { return others(x[0]); };
      return f;
    };
    return sample;
  };
  const Sample throws = outcome([](const Variable& x) -> Variable { fail("square", "of ", x.shape()); });
  CHECK_THROWS_WITH_AS(parts::prove_composed(throws, 1), "square: of [3, 4]", Error);
  CHECK_FALSE(parts::prove_composed(outcome([](const Variable& x) { return x / 0.0; }), 1).ok);
  CHECK_THROWS_AS(parts::prove_composed(outcome([](const Variable& x) { return sum(x); }), 1), Error);
  CHECK(parts::prove_composed(outcome([](const Variable& x) { return x * x; }), 1).ok);
}

TEST_CASE("promise 7: small: wrong where x is 0, or tiny in f32") {
  const Sample at_0 =
      square_wrong_where([](const Tensor& x, const Tensor&) { return count(x, [](double v) { return v == 0; }) > 0; });
  CHECK(failed_parts(at_0) == "small");
  CHECK(parts::prove_small(at_0, 1).detail.starts_with("with inputs of 0:\n"));
  const auto tiny = [](const Tensor& x, const Tensor&) {
    return x.dtype() == f32 && count(x, [](double v) { return v != 0 && std::fabs(v) < 1e-15; }) > 0;
  };
  CHECK(failed_parts(square_wrong_where(tiny)) == "small");
  CHECK(parts::prove_small(square_wrong_where(tiny), 1).detail.starts_with("with inputs of 2^-66 of themselves:\n"));
  // At 0 the magnitude has no slope, and relu may choose one. NaN is none, and would reach every parameter.
  const auto magnitude = [](const Variable& x) { return sqrt(x * x); };
  CHECK(parts::prove_small(sample_of("relu", [](const Variable& x) { return relu(x); }, {{3, 4}}), 1).ok);
  CHECK(parts::prove_small(sample_of("magnitude", magnitude, {{3, 4}}), 1).detail.find("nan, numeric 0") !=
        std::string::npos);
}

TEST_CASE("promise 7: threads: wrong in another thread than the first, and one that sets their number") {
  const Sample elsewhere = square_wrong_where(
      [home = std::this_thread::get_id()](const Tensor&, const Tensor&) { return std::this_thread::get_id() != home; });
  CHECK(failed_parts(elsewhere) == "threads");
  CHECK(parts::prove_threads(elsewhere, 1).detail == "in another thread than the first, other bits for input 0");
  const int before = threads();
  const Sample setting = square_wrong_where([](const Tensor&, const Tensor&) {
    set_threads(4);
    return false;
  });
  CHECK(failed_parts(setting) == "threads");
  CHECK(parts::prove_threads(setting, 1).detail == "a pass sets the number of threads");
  CHECK(threads() == before);
}

TEST_CASE("promise 7: repeatable: a pass that keeps every dy") {
  const auto kept = std::make_shared<std::vector<Tensor>>();
  const Sample keeping = square_wrong_where([kept](const Tensor&, const Tensor& dy) {
    kept->push_back(dy);
    return false;
  });
  CHECK(failed_parts(keeping) == "repeatable");
  CHECK(parts::prove_repeatable(keeping, 1).detail == "each pass keeps a dy for ever");
  const Sample keeping_one = square_wrong_where([kept](const Tensor&, const Tensor& dy) {
    *kept = {dy};
    return false;
  });
  CHECK(failed_parts(keeping_one).empty());
}

TEST_CASE("promise 7: step: a weight that training does not reach") {
  const Sample packed = nn::module_sample(
      "PackedOnce", "", {{2, 4}}, [](Rng& rng) { return PackedOnce(rng); },
      [](const PackedOnce& layer, const Variable& x) { return layer(x); });
  CHECK(failed_parts(packed) == "step");
  CHECK(parts::prove_step(packed, 1).detail.starts_with(
      "a step of weight along its gradient changes L by 0 instead of -"));
  const Sample operation = square_wrong_where([](const Tensor&, const Tensor&) { return false; });
  CHECK(parts::prove_step(operation, 1).name.empty());
}

TEST_CASE("promise 7: every parameter of every layer and model moves in a step of SGD and of AdamW") {
  i64 moved = 0;
  for (const Sample& sample : nn::module_samples()) {
    CAPTURE(sample.name);
    CAPTURE(sample.variant);
    for (const bool adam : {false, true}) {
      const Checkable f = parts::built(sample, f32, 1);
      Parameters parameters(f.leaves.begin() + static_cast<std::ptrdiff_t>(f.inputs), f.leaves.end());
      if (parameters.empty()) continue;
      const Variable y = f.output();
      backward(y, parts::cotangent(y.shape(), f32, 1));
      std::vector<Tensor> before;
      for (const NamedParameter& p : parameters) before.push_back(p.value.value().clone());
      const std::unique_ptr<optim::Optimizer> optimizer = [&]() -> std::unique_ptr<optim::Optimizer> {
        if (adam) return std::make_unique<optim::AdamW>(parameters);
        return std::make_unique<optim::SGD>(parameters);
      }();
      optimizer->step(0.01);
      for (size_t i = 0; i < parameters.size(); ++i) {
        const std::string& name = parameters[i].name;
        const bool stays = std::any_of(f.zeros.begin(), f.zeros.end(), [&](const auto& z) { return z.name == name; });
        CHECK_MESSAGE((stays || !same_bits(parameters[i].value.value(), before[i])), name);
        moved += !stays;
      }
    }
  }
  CHECK(moved > 1000);
}
