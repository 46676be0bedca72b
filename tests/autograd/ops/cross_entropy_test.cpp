// Chapter 4. Cross entropy: by hand, smoothed in both forms, with targets that do not count, at large logits.
#include "autograd/apply.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

Tensor ids(const std::vector<i32>& elements) { return Tensor::of({static_cast<i64>(elements.size())}, elements); }

// Logits whose softmax is exactly 1/2, 1/4, 1/4.
Tensor halves() { return Tensor::of<double>({1, 3}, {std::log(2.0), 0, 0}); }

double loss_of(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options = {}) {
  return cross_entropy(constant(logits), targets, options).item();
}

Tensor gradient_of(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options = {}) {
  const Variable x = parameter(logits.clone());
  backward(cross_entropy(x, targets, options));
  return x.gradient();
}

}  // namespace

TEST_CASE("cross entropy and both forms of smoothing, by hand") {
  const double ln2 = std::log(2.0);
  CHECK(close(loss_of(halves(), ids({0})), ln2));
  CHECK(close(loss_of(halves(), ids({2})), 2 * ln2));
  CHECK(close(gradient_of(halves(), ids({0})), {-0.5, 0.25, 0.25}));
  // eps = 0.3 over all 3 classes: q = (0.8, 0.1, 0.1); over the 2 wrong ones: q = (0.7, 0.15, 0.15).
  const CrossEntropyOptions all{.label_smoothing = 0.3};
  const CrossEntropyOptions wrong{.label_smoothing = 0.3, .smoothing = Smoothing::wrong_classes};
  CHECK(close(loss_of(halves(), ids({0}), all), 0.8 * ln2 + 0.2 * 2 * ln2));
  CHECK(close(gradient_of(halves(), ids({0}), all), {0.5 - 0.8, 0.25 - 0.1, 0.25 - 0.1}));
  CHECK(close(loss_of(halves(), ids({0}), wrong), 0.7 * ln2 + 0.3 * 2 * ln2));
  CHECK(close(gradient_of(halves(), ids({0}), wrong), {0.5 - 0.7, 0.25 - 0.15, 0.25 - 0.15}));
}

TEST_CASE("the loss is a mean over the targets that count, a sum, or divided by what was given") {
  const Tensor x = normal({4, 5});
  const Tensor targets = ids({1, -100, 4, 0});
  const double total = loss_of(x, targets, {.reduction = Reduction::sum});
  CHECK(close(loss_of(x, targets), total / 3));
  CHECK(close(loss_of(x, targets, {.reduction = Reduction::divisor, .divisor = 7}), total / 7));
  CHECK(close(loss_of(x.rows(0, 1), ids({1})) + loss_of(x.rows(2, 3), ids({4})) + loss_of(x.rows(3, 4), ids({0})),
              total));
  const Tensor dx = gradient_of(x, targets);
  for (i64 k = 5; k < 10; ++k) CHECK(dx.at(k) == 0.0);
  CHECK(close(loss_of(x.reshape({2, 2, 5}), targets.reshape({2, 2})), total / 3));
}

TEST_CASE("no target that counts gives loss 0 and gradient 0, as does no target at all") {
  for (const Dtype dtype : {f32, f64}) {
    const Tensor x = normal({2, 3}, 5, dtype);
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
      const CrossEntropyOptions options{.ignore_index = 1, .label_smoothing = 0.1, .reduction = reduction};
      CHECK(loss_of(x, ids({1, 1}), options) == 0.0);
      CHECK(same_bits(gradient_of(x, ids({1, 1}), options), zeros({2, 3}, dtype)));
    }
    CHECK(loss_of(zeros({0, 3}, dtype), ids({})) == 0.0);
  }
}

TEST_CASE("promise 14: logits of 1e4 and -inf give finite losses and gradients; what is ignored may hold NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {f32, f64}) {
    const Tensor large = Tensor::of<double>({3, 2}, {1e4, -1e4, -1e4, 1e4, 0, -infinity}).to(dtype);
    CHECK(close(loss_of(large, ids({0, 0, 0}), {.reduction = Reduction::sum}), 2e4, 1e-7));
    CHECK(close(gradient_of(large, ids({0, 0, 0}), {.reduction = Reduction::sum}), {0, 0, -1, 1, 0, 0}, 1e-6));
    const Tensor poisoned = Tensor::of<double>({2, 2}, {0, 0, std::nan(""), 1}).to(dtype);
    CHECK(close(loss_of(poisoned, ids({1, -100})), std::log(2.0), 1e-7));
    CHECK(close(gradient_of(poisoned, ids({1, -100})), {0.5, -0.5, 0, 0}, 1e-6));
  }
}

TEST_CASE("losses of numbers, of yes and no, and between distributions, by hand and far from 0") {
  const Variable y = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, 4}));
  const Tensor t = Tensor::of<double>({2, 2}, {1, 0, 3, 0});
  CHECK(close(mse(y, t, {.reduction = Reduction::divisor, .divisor = 8}).item(), 2.5));
  const Variable logits = parameter(vector_of({0, 1e4, -1e4, 40}));
  const Tensor yes = vector_of({0.5, 1, 0, 0});
  CHECK(close(bce_with_logits(logits, yes, {.reduction = Reduction::sum}).item(), std::log(2.0) + 40));
  backward(bce_with_logits(logits, yes));
  CHECK(close(logits.gradient(), {0, 0, 0, 0.25}));
  const Variable log_p = log_softmax(constant(Tensor::of<double>({1, 2}, {0, 0})));
  CHECK(close(kl_divergence(log_p, Tensor::of<double>({1, 2}, {1, 0})).item(), std::log(2.0)));
  CHECK(close(kl_divergence(log_p, full({1, 2}, 0.5, f64)).item(), 0));
  CHECK(mse(constant(zeros({0})), zeros({0})).item() == 0);
  CHECK(contains(error_of([&] { (void)mse(y, zeros({2, 2})); }), "mse: needs targets f64 [2, 2], got f32 [2, 2]"));
  CHECK(contains(error_of([&] { (void)mse(y, t, {.divisor = 5}); }), "a divisor counts only with Reduction::divisor"));
}

TEST_CASE("cross entropy's errors name the rule, and a target out of range with its position") {
  const Variable x = parameter(normal({2, 3}), "logits");
  const auto error = [&](const Tensor& targets, const CrossEntropyOptions& options = {}) {
    return error_of([&] { (void)cross_entropy(x, targets, options); });
  };
  const Tensor zero = ids({0, 0});
  CHECK(error(ids({0, 3})) ==
        "cross_entropy: target 3 at position 1 is outside [0, 3)\n  input 0: [2, 3]  from parameter logits");
  CHECK(contains(error(ids({-1, 0})), "target -1 at position 0"));
  CHECK(contains(error(ids({0})), "logits [2, 3] need targets of shape [2], got [1]"));
  for (const Tensor& wrong : {zeros({2}), Tensor()}) CHECK(contains(error(wrong), "targets must be i32"));
  CHECK(contains(error(zero, {.label_smoothing = 1.5}), "label smoothing must lie in [0, 1], got 1.5"));
  for (const double divisor : {0.0, -1.0})
    CHECK(contains(error(zero, {.reduction = Reduction::divisor, .divisor = divisor}), "the divisor must be positive"));
  CHECK(contains(error(zero, {.divisor = 5}), "a divisor counts only with Reduction::divisor"));
  const CrossEntropyOptions wrong{.label_smoothing = 0.1, .smoothing = Smoothing::wrong_classes};
  CHECK(contains(error_of([&] {
                   (void)cross_entropy(parameter(zeros({2, 1})), zero, wrong);
                 }),
                 "smoothing over wrong classes needs at least 2 classes"));
}

TEST_CASE("a divisor of 0 is right where no target counts") {
  const Variable x = parameter(zeros({2, 3}));
  const CrossEntropyOptions by_none{.reduction = Reduction::divisor, .divisor = 0};
  const Variable loss = cross_entropy(x, ids({-100, -100}), by_none);
  CHECK(loss.item() == 0);
  backward(loss);
  CHECK(same_bits(x.gradient(), zeros({2, 3})));
}

namespace {

// y = 2 x, which tells where y and, in backward, dy lie.
struct NotedLogits {
  static constexpr std::string_view name = "noted";
  const double **value, **gradient;
  Tensor forward(const Tensor& x) {
    Tensor y = scale(x, 2.0);
    *value = y.data<double>();
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    *gradient = dy.data<double>();
    dx.add(0, scale(dy, 2.0));
  }
};

struct LossPass {
  Tensor gradient;   // of the logits' own input
  bool overwritten;  // the logits' memory held their gradient
};

template <class Hold> LossPass loss_pass(const Hold& hold) {
  const Variable x = parameter(normal({3, 5}));
  const double *value = nullptr, *gradient = nullptr;
  Variable logits = apply(NotedLogits{&value, &gradient}, x);
  [[maybe_unused]] const auto held = hold(logits);
  const Variable loss = cross_entropy(logits, ids({1, 0, 4}), {.label_smoothing = 0.1});
  logits = {};
  backward(loss);
  return {x.gradient(), gradient == value};
}

}  // namespace

TEST_CASE("logits turn into their gradient in place only where the loss alone owns them") {
  const LossPass alone = loss_pass([](const Variable&) { return 0; });
  const LossPass variable = loss_pass([](const Variable& logits) { return logits; });
  const LossPass tensor = loss_pass([](const Variable& logits) { return logits.value(); });
  const LossPass view = loss_pass([](const Variable& logits) { return logits.value().reshape({15}); });
  const LossPass part = loss_pass([](const Variable& logits) { return logits.value().rows(1, 2); });
  CHECK(alone.overwritten);
  for (const LossPass& held : {variable, tensor, view, part}) {
    CHECK_FALSE(held.overwritten);
    CHECK(same_bits(held.gradient, alone.gradient));
  }
}

TEST_CASE("logits that somebody holds keep their numbers through backward") {
  const Variable leaf = parameter(normal({3, 5}));
  const Tensor before = leaf.value().clone();
  backward(cross_entropy(leaf, ids({1, 0, 4})));
  CHECK(same_bits(leaf.value(), before));

  const Variable logits = leaf * 2.0;
  const Tensor doubled = logits.value().clone();
  backward(cross_entropy(logits, ids({1, 0, 4})));
  CHECK(same_bits(logits.value(), doubled));
}

TEST_CASE("logits that another operation saved keep their numbers, whichever backward runs first") {
  const auto gradient = [](bool loss_first, bool share) {
    const Variable x = parameter(normal({3, 5}));
    Variable y;
    {
      const Variable logits = tanh(x);  // saves its output
      const Variable other = share ? logits : tanh(x);
      if (loss_first) {
        const Variable loss = cross_entropy(logits, ids({1, 0, 4}));
        y = sum(exp(other)) + loss;
      } else {
        const Variable e = sum(mul(other, other));
        y = cross_entropy(logits, ids({1, 0, 4})) + e;
      }
    }
    backward(y);
    return x.gradient();
  };
  for (const bool loss_first : {false, true})
    CHECK(close(gradient(loss_first, true), elements(gradient(loss_first, false))));
}
