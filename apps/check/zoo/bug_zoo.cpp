// Chapter 7. The bug zoo: the list. To hunt for the mistakes yourself, read no further, and begin with
// apps/book/bugs/README.md.
#include "apps/check/zoo/bug_zoo.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/apply.h"
#include "autograd/check/samples.h"
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"
#include "nn/check/sample_rows.h"
#include "nn/check/samples.h"

// Each struct is an operation of autograd/ops/ with one mistake; the programs of apps/book/bugs are others.
namespace orrery::bugs {

struct Softmax {
  static constexpr std::string_view name = "softmax";
  Saved y;
  Tensor forward(const Tensor& x) {
    const Tensor e = kernels::map(x - max(x, {-1}, true), name, [](auto v) { return std::exp(v); });
    const Tensor result = e / sum(e, {-1}, true);
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, y.get() * dy); }
};

struct Matmul {
  static constexpr std::string_view name = "matmul";
  Saved a, b;
  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return matmul(left, right);
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, matmul(dy, b.get()));
    dx.add(1, matmul(a.get(), dy));
  }
};

struct DropoutNotRescaled {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor dropped(const Tensor& x) const { return orrery::dropout(constant(x), p, draw).value(); }
  Tensor forward(const Tensor& x) { return dropped(x); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dropped(dy) * (1 - p)); }
};

struct Gelu {
  static constexpr std::string_view name = "gelu";
  template <class T> T value(T x) const { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<T>)); }
  template <class T> T derivative(T x) const {
    const T slope = std::sqrt(2 / std::numbers::pi_v<T>), cubic = static_cast<T>(0.044715);
    const T t = std::tanh(slope * (x + cubic * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * slope * (1 + 3 * cubic * x * x);
  }
};

// Right in f64: gradcheck works there, and the proof compares the two.
struct TanhSaturatedEarlyInF32 {
  static constexpr std::string_view name = "tanh";
  Saved x;
  Tensor forward(const Tensor& in) {
    x = in;
    return kernels::map(in, name, [](auto v) { return std::tanh(v); });
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy * kernels::map(x.get(), name, [](auto v) {
                const auto y = std::tanh(v);
                const bool saturated = sizeof v == sizeof(float) && std::fabs(v) > 1.5;
                return saturated ? decltype(v){0} : 1 - y * y;
              }));
  }
};

// Right as long as somebody else holds the output: backward reads what it has just written over.
struct SoftmaxOverItsOutput {
  static constexpr std::string_view name = "softmax";
  Saved y;
  Tensor forward(const Tensor& x) {
    const Tensor result = orrery::softmax(constant(x)).value();
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor saved = y.get();
    y = Saved();
    Tensor g = dx.reuse(saved);
    copy_into(g, saved * dy);
    dx.add(0, g - saved * sum(g, {-1}, true));
  }
};

namespace bug_4 {
#include "apps/book/bugs/4.cpp"
}
namespace bug_6 {
#include "apps/book/bugs/6.cpp"
}
namespace bug_7 {
#include "apps/book/bugs/7.cpp"
}
namespace bug_9 {
#include "apps/book/bugs/9.cpp"
}
namespace bug_11 {
#include "apps/book/bugs/11.cpp"
}
namespace bug_13 {
#include "apps/book/bugs/13.cpp"
}
namespace bug_16 {
#include "apps/book/bugs/16.cpp"
}
namespace bug_18 {
#include "apps/book/bugs/18.cpp"
}
namespace bug_20 {
#include "apps/book/bugs/20.cpp"
}
}  // namespace orrery::bugs

namespace orrery::nn {
namespace {

using Leaves = std::vector<Variable>;

// The rows of `table` called `name`, with `wrong` in place of the correct function of the same leaves.
std::vector<Sample> replaced(const std::vector<Sample>& table, const std::string& name,
                             const std::vector<std::string>& variants, const WrongFunction& wrong) {
  std::vector<Sample> result;
  for (const Sample& row : table) {
    const bool chosen = variants.empty() || std::find(variants.begin(), variants.end(), row.variant) != variants.end();
    if (row.name != name || !chosen) continue;
    result.push_back(row);
    result.back().make = [right = row.make, wrong](Dtype dtype, u64 seed) {
      Checkable checkable = right(dtype, seed);
      Leaves leaves;
      for (const NamedParameter& leaf : checkable.leaves) leaves.push_back(leaf.value);
      checkable.output = [wrong, leaves] { return wrong(leaves); };
      checkable.of_inputs = [wrong, leaves](Leaves others) {
        others.insert(others.end(), leaves.begin() + static_cast<std::ptrdiff_t>(others.size()), leaves.end());
        return wrong(others);
      };
      return checkable;
    };
  }
  check(!result.empty() && (variants.empty() || result.size() == variants.size()), "bug_zoo",
        "there are no such samples of ", name);
  return result;
}

struct LayerNormWithConstantDeviation : bugs::bug_7::LayerNorm {
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor g = dy * weight.get();
    dx.add(0, (g - mean(g, {-1}, true)) * reciprocal.get());
    add_parameters(dy, dx);
  }
};
Variable with_constant_deviation(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  return apply(LayerNormWithConstantDeviation{{eps, {}, {}, {}}}, x, weight, bias);
}

// The rows of layer norm in its usual form, with weight and bias, but not "long" and "tails". Their eps differ.
using LayerNormFunction = Variable (*)(const Variable&, const Variable&, const Variable&, double);
std::vector<Sample> layer_norm_rows(LayerNormFunction wrong) {
  const auto with_eps = [wrong](double eps) {
    return [wrong, eps](const Leaves& x) { return wrong(x[0], x[1], x[2], eps); };
  };
  return joined({operation_rows("layer_norm", {"root of variance plus eps"}, with_eps(1e-2)),
                 operation_rows("layer_norm", {"one element", "size 0"}, with_eps(1e-5)),
                 layer_rows("LayerNorm", {"root of variance + eps"}, with_eps(1e-5))});
}

std::vector<Bug> wrong_normalisations() {
  return {
      {.name = "softmax-without-inner-product",
       .mistake = "Softmax's backward is dx = y dy: the inner product <dy, y> is missing.",
       .hint = "The outputs add up to 1. What must dx then be if dy is the same everywhere?",
       .samples = operation_rows("softmax", {}, [](const Leaves& x) { return apply(bugs::Softmax{}, x[0]); })},
      {.name = "layer-norm-without-mean-term",
       .mistake = "Layer norm's backward lacks the mean of dy w: it treats the mean of x as a constant.",
       .hint = "Add 1 to every x of a row: y does not change. So what must the dx of a row add up to?",
       .samples = layer_norm_rows(bugs::bug_7::my_layer_norm)},
      {.name = "layer-norm-with-constant-deviation",
       .mistake = "Layer norm's backward treats the standard deviation of x as a constant.",
       .hint = "Double every x of a row: y hardly changes. So what must <dx, x> be, approximately?",
       .samples = layer_norm_rows(with_constant_deviation)},
      {.name = "attention-scale-forward-only",
       .mistake = "Scores are divided by sqrt(d_k) forward; backward forgets it.",
       .hint = "A forgotten factor is the same in every coordinate: look at the ratio in the message.",
       .samples = operation_rows(
           "attention", {"everything", "more keys than queries", "keys of three numbers", "one query, one key"},
           [](const Leaves& x) {
             const Variable scores = bugs::bug_9::my_scores(x[0], x[1]);
             return matmul(masked_softmax(scores, Mask()), x[2]);
           })},
      {.name = "cross-entropy-divided-by-all-targets",
       .mistake = "The gradient is divided by the number of all targets, the loss by the number of those that count.",
       .hint = "Gradient and loss agree as long as there is no padding.",
       .samples = operation_rows("cross_entropy", {"plain"},
                                 [targets = ids({2, 2}, {1, 0, -100, 3})](const Leaves& x) {
                                   return bugs::bug_20::my_cross_entropy(x[0], targets);
                                 })},
  };
}

std::vector<Bug> wrong_sums() {
  return {
      {.name = "bias-gradient-over-wrong-axis",
       .mistake = "The bias's gradient sums over the features instead of the positions.",
       .hint = "If there are as many positions as outputs, the shapes do not show it.",
       .samples = layer_rows("Linear", {""}, [](const Leaves& x) { return bugs::bug_4::my_linear(x[0], x[1], x[2]); })},
      {.name = "broadcast-gradient-not-summed",
       .mistake = "A row that was added to every row gets only the gradient of the first row.",
       .hint = "How often was the row used?",
       .samples =
           operation_rows("add", {"broadcast row"}, [](const Leaves& x) { return bugs::bug_11::my_add(x[0], x[1]); })},
      {.name = "matmul-without-transposes",
       .mistake = "The product's backward is da = dy b and db = a dy, without transposing.",
       .hint = "With square matrices the shapes do not show it. Write out dL/da_ik for two by two.",
       .samples = operation_rows("matmul", {"square", "repeated input"},
                                 [](const Leaves& x) { return apply(bugs::Matmul{}, x.front(), x.back()); })},
      {.name = "embedding-gradient-overwritten",
       .mistake = "A token that occurs twice keeps only the gradient of its last place: '=' where '+=' belongs.",
       .hint = "Which sentences would show it, and which would not?",
       .samples = joined({operation_rows("embedding", {"repeated ids"},
                                         [i = ids({2, 3}, {1, 0, 1, 3, 1, 0})](const Leaves& x) {
                                           return bugs::bug_6::my_embedding(x[0], i);
                                         }),
                          layer_rows("Embedding", {"repeated ids"},
                                     [i = ids({2, 3}, {4, 0, 2, 2, 2, 1})](const Leaves& x) {
                                       return bugs::bug_6::my_embedding(x[0], i);
                                     })})},
      {.name = "shared-weight-counted-once",
       .mistake = "A weight that is used twice gets only the gradient of its first use: the second reads a copy.",
       .hint = "One number is used twice. By how many paths does it reach the loss, and which send something back?",
       .samples = joined(
           {operation_rows("matmul", {"repeated input"}, [](const Leaves& x) { return matmul(x[0], detach(x[0])); }),
            operation_rows("mul", {"repeated input"}, [](const Leaves& x) { return mul(x[0], detach(x[0])); }),
            operation_rows("add", {"repeated input"}, [](const Leaves& x) { return add(x[0], detach(x[0])); })})},
  };
}

// The rows of dropout, but not "long" and "inference".
using DropoutFunction = Variable (*)(const Variable&, double, const Draw&);
std::vector<Sample> dropout_rows(DropoutFunction wrong) {
  const auto with = [wrong](double p) {
    return [wrong, p](const Leaves& x) { return wrong(x[0], p, {.seed = 5, .step = 1}); };
  };
  return joined({operation_rows("dropout", {"p 0.3"}, with(0.3)), operation_rows("dropout", {"p 0"}, with(0)),
                 operation_rows("dropout", {"p 1"}, with(1)), layer_rows("Dropout", {"training"}, with(0.4))});
}

std::vector<Bug> wrong_elements() {
  return {
      {.name = "dropout-not-rescaled",
       .mistake = "Forward scales what it keeps by 1 / (1 - p); backward does not.",
       .hint = "Dropout is a linear map. What is the derivative of a linear map?",
       .samples = dropout_rows([](const Variable& x, double p, const Draw& draw) {
         return apply(bugs::DropoutNotRescaled{p, draw}, x);
       })},
      {.name = "dropout-with-fresh-mask",
       .mistake = "Backward draws a new mask instead of forward's.",
       .hint = "Some coordinates have a gradient although y does not depend on them at all.",
       .samples = dropout_rows(bugs::bug_18::my_dropout)},
      {.name = "gelu-derivative-of-other-form",
       .mistake = "The value is the exact GELU, the derivative that of its tanh approximation.",
       .hint = "The error is about 0.001: too small for many tolerances.",
       .samples = operation_rows("gelu", {}, [](const Leaves& x) { return elementwise(bugs::Gelu{}, x[0]); })},
      {.name = "tanh-derivative-at-input",
       .mistake = "The derivative is written as 1 - x^2 where it is 1 - y^2.",
       .hint = "Which of the two, x or y, does the formula in the book mean?",
       .samples = operation_rows("tanh", {}, [](const Leaves& x) { return bugs::bug_16::my_tanh(x[0]); })},
  };
}

// Gradient checks need f64; training runs in f32.
std::vector<Bug> wrong_in_f32() {
  return {
      {.name = "tanh-saturated-early-in-f32",
       .mistake = "In f32 the derivative is 0 beyond |x| = 1.5, where it is still 0.18.",
       .hint = "Every slope is correct. In which dtype were they measured, and in which one does training run?",
       .samples = operation_rows("tanh", {"[3, 4]"},
                                 [](const Leaves& x) { return apply(bugs::TanhSaturatedEarlyInF32{}, x[0]); })},
      {.name = "bias-gradient-negated-in-f32",
       .mistake = "In f32 the bias's gradient has the wrong sign.",
       .hint = "f32 alone is wrong, by 2 times its size: that is a wrong sign. What in backward knows the dtype?",
       .samples = operation_rows("linear", {"three axes"},
                                 [](const Leaves& x) { return bugs::bug_13::my_linear(x[0], x[1], x[2]); })},
  };
}

// A value by itself is held by who made it; within a model, nobody holds it.
std::vector<Bug> wrong_within_a_model() {
  return {{.name = "softmax-over-its-output",
           .mistake = "Backward writes y dy over the saved y, and then reads y again for the inner product's term.",
           .hint = "By itself every pass is right, since the caller still holds the output. Who holds it in a model?",
           .samples = operation_rows("softmax", {},
                                     [](const Leaves& x) { return apply(bugs::SoftmaxOverItsOutput{}, x[0]); })}};
}

}  // namespace

std::vector<Sample> operation_rows(const std::string& name, const std::vector<std::string>& variants,
                                   const WrongFunction& wrong) {
  return replaced(operation_samples(), name, variants, wrong);
}
std::vector<Sample> layer_rows(const std::string& name, const std::vector<std::string>& variants,
                               const WrongFunction& wrong) {
  return replaced(module_samples(), name, variants, wrong);
}

const std::vector<Bug>& bug_zoo() {
  static const std::vector<Bug> all =
      joined({wrong_normalisations(), wrong_sums(), wrong_elements(), bugs_found_without_derivatives(), wrong_in_f32(),
              wrong_within_a_model(), bugs_of_steps()});
  return all;
}

}  // namespace orrery::nn
