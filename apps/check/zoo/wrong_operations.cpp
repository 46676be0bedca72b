// Chapter 6. The bug zoo: each struct is an operation of autograd/ops/ with one mistake.
#include "apps/check/zoo/wrong_operations.h"

#include <cmath>
#include <numbers>

#include "autograd/apply.h"
#include "autograd/elementwise.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "core/tensor_ops.h"

namespace orrery::bugs {
namespace {

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

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double eps;
  Saved normal, reciprocal, weight;

  Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b) {
    const Tensor centred = x - mean(x, {-1}, true);
    const Tensor r = kernels::map(mean(centred * centred, {-1}, true), name, [eps = eps](auto variance) {
      return decltype(variance)(1 / std::sqrt(variance + eps));
    });
    const Tensor n = centred * r;
    normal = n;
    reciprocal = r;
    weight = w;
    return n * w + b;
  }
  void add_parameters(const Tensor& dy, Grads& dx) const {
    dx.add(1, dy * normal.get());
    dx.add(2, dy);
  }
};

struct LayerNormWithoutMeanTerm : LayerNorm {
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor g = dy * weight.get(), inner = mean(g * normal.get(), {-1}, true);
    dx.add(0, (g - normal.get() * inner) * reciprocal.get());
    add_parameters(dy, dx);
  }
};

struct LayerNormWithConstantDeviation : LayerNorm {
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor g = dy * weight.get();
    dx.add(0, (g - mean(g, {-1}, true)) * reciprocal.get());
    add_parameters(dy, dx);
  }
};

struct Scores {
  static constexpr std::string_view name = "scores";
  Saved Q, K;
  Tensor forward(const Tensor& queries, const Tensor& keys) {
    Q = queries;
    K = keys;
    return matmul(queries, keys, Trans::b) * (1.0 / std::sqrt(static_cast<double>(queries.size(-1))));
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, matmul(dy, K.get()));
    dx.add(1, matmul(dy, Q.get(), Trans::a));
  }
};

struct Linear {
  static constexpr std::string_view name = "linear";
  Saved x, weight;
  Tensor forward(const Tensor& in, const Tensor& w, const Tensor& b) {
    x = in;
    weight = w;
    return matmul(in, w, Trans::b) + b;
  }
  void backward(const Tensor& dy, Grads& dx) {  // dy [B, T, out]
    const Tensor rows = x.get().reshape({-1, x.get().size(-1)}), d = dy.reshape({rows.size(0), dy.size(-1)});
    dx.add(0, matmul(dy, weight.get()));
    dx.add(1, matmul(d, rows, Trans::a));
    dx.add(2, sum(dy, {0, 2}));
  }
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

struct Embedding {
  static constexpr std::string_view name = "embedding";
  Tensor ids;
  Tensor forward(const Tensor& weight) { return orrery::embedding(constant(weight), ids).value(); }
  void backward(const Tensor& dy, Grads& dx) {
    const i64 D = dy.size(-1);
    Tensor g = zeros(dx.shape(0), dx.dtype(0));
    const Tensor rows = dy.reshape({ids.count(), D});
    for (i64 i = 0; i < ids.count(); ++i) {
      Tensor row = g.rows(ids.data<i32>()[i], ids.data<i32>()[i] + 1);
      copy_into(row, rows.rows(i, i + 1));
    }
    dx.add(0, g);
  }
};

// Forward of both wrong dropouts, through the right one.
Tensor dropped(const Tensor& x, double p, const Draw& draw) { return orrery::dropout(constant(x), p, draw).value(); }

struct DropoutNotRescaled {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor forward(const Tensor& x) { return dropped(x, p, draw); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dropped(dy, p, draw) * (1 - p)); }
};

struct DropoutWithFreshMask {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor forward(const Tensor& x) { return dropped(x, p, draw); }
  void backward(const Tensor& dy, Grads& dx) {
    ++draw.index;
    dx.add(0, dropped(dy, p, draw));
  }
};

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  Tensor targets;
  Saved logits;
  Tensor forward(const Tensor& x) {
    logits = x;
    return orrery::cross_entropy(constant(x), targets).value();
  }
  void backward(const Tensor& dy, Grads& dx) {
    const i64 K = logits.get().size(-1);
    Tensor d = orrery::softmax(constant(logits.get())).value().clone();
    for (i64 i = 0; i < targets.count(); ++i) {
      Tensor row = d.reshape({-1, K}).rows(i, i + 1);
      const i32 target = targets.data<i32>()[i];
      if (target == -100)
        fill(row, 0);
      else
        slice_into(row, full({1, 1}, -1.0, row.dtype()), 1, target, true);
    }
    dx.add(0, d * (dy.item() / static_cast<double>(targets.count())));
  }
};

struct Add {
  static constexpr std::string_view name = "add";
  Tensor forward(const Tensor& a, const Tensor& b) { return a + b; }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    if (dx.wanted(1)) dx.add(1, dy.rows(0, 1).reshape(dx.shape(1)));
  }
};

struct Gelu {
  static constexpr std::string_view name = "gelu";
  template <class T>
  T value(T x) const {
    return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
  }
  template <class T>
  T derivative(T x) const {
    const T slope = std::sqrt(2 / std::numbers::pi_v<T>), cubic = static_cast<T>(0.044715);
    const T t = std::tanh(slope * (x + cubic * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * slope * (1 + 3 * cubic * x * x);
  }
};

struct Tanh {
  static constexpr std::string_view name = "tanh";
  template <class T>
  T value(T x) const {
    return std::tanh(x);
  }
  template <class T>
  T derivative(T x) const {
    return 1 - x * x;
  }
};

struct Relu {
  static constexpr std::string_view name = "relu";
  template <class T>
  T value(T x) const {
    return x < 0 ? T{0} : x;
  }
  template <class T>
  T derivative(T x) const {
    return x >= 0 ? T{1} : T{0};
  }
};

struct Max {
  static constexpr std::string_view name = "max";
  Axes axes;
  bool keep_axes;
  Saved x, y;
  Tensor forward(const Tensor& in) {
    x = in;
    y = max(in, axes, true);
    return max(in, axes, keep_axes);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor is_max =
        kernels::broadcast_map(x.get(), y.get(), name, [](auto a, auto b) { return decltype(a)(a == b); });
    dx.add(0, is_max * dy.reshape(y.get().shape()));
  }
};

// Q K^T / sqrt(d_k), and 1 where `mask` allows, else 0. Both are right; the mistake is in how they are combined.
Variable scaled_scores(const Variable& Q, const Variable& K) {
  return matmul(Q, K, Trans::b) * (1.0 / std::sqrt(static_cast<double>(Q.size(-1))));
}
Variable allowed_by(const Mask& mask, const Variable& scores) {
  const auto [B, h, n, m] = dims<4>(scores.value(), "mask");
  Tensor allowed = zeros(scores.shape(), f64);
  for (i64 i = 0; i < B * h * n * m; ++i) {
    allowed.write<double>()[i] = mask.allowed(i / (h * n * m), i / (n * m) % h, i / m % n, i % m, n, m);
  }
  return constant(allowed.to(scores.dtype()));
}

}  // namespace

Variable softmax_without_inner_product(const Variable& x) { return apply(Softmax{}, x); }

Variable layer_norm_without_mean_term(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  return apply(LayerNormWithoutMeanTerm{{eps, {}, {}, {}}}, x, weight, bias);
}
Variable layer_norm_with_constant_deviation(const Variable& x, const Variable& weight, const Variable& bias,
                                            double eps) {
  return apply(LayerNormWithConstantDeviation{{eps, {}, {}, {}}}, x, weight, bias);
}

Variable scores_unscaled_in_backward(const Variable& Q, const Variable& K) { return apply(Scores{}, Q, K); }
Variable linear_with_bias_summed_over_wrong_axis(const Variable& x, const Variable& weight, const Variable& bias) {
  return apply(Linear{}, x, weight, bias);
}
Variable matmul_without_transposes(const Variable& a, const Variable& b) { return apply(Matmul{}, a, b); }
Variable embedding_overwritten_on_repeats(const Variable& weight, const Tensor& ids) {
  return apply(Embedding{ids}, weight);
}
Variable dropout_not_rescaled_in_backward(const Variable& x, double p, const Draw& draw) {
  return apply(DropoutNotRescaled{p, draw}, x);
}
Variable dropout_with_fresh_mask_in_backward(const Variable& x, double p, const Draw& draw) {
  return apply(DropoutWithFreshMask{p, draw}, x);
}
Variable cross_entropy_divided_by_all_targets(const Variable& logits, const Tensor& targets) {
  return apply(CrossEntropy{targets, {}}, logits);
}
Variable add_without_sum_over_broadcast(const Variable& a, const Variable& b) { return apply(Add{}, a, b); }
Variable gelu_with_derivative_of_tanh_form(const Variable& x) { return elementwise(Gelu{}, x); }
Variable tanh_with_derivative_at_input(const Variable& x) { return elementwise(Tanh{}, x); }
Variable relu_with_derivative_at_zero(const Variable& x) { return elementwise(Relu{}, x); }
Variable max_with_whole_gradient_to_all_ties(const Variable& x, const Axes& axes, bool keep_axes) {
  return apply(Max{axes, keep_axes, {}, {}}, x);
}

AttentionResult attention_without_scale(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const Variable weights = masked_softmax(matmul(Q, K, Trans::b), mask);
  return {.output = matmul(weights, V), .weights = weights};
}

AttentionResult attention_masked_after_softmax(const Variable& Q, const Variable& K, const Variable& V,
                                               const Mask& mask) {
  const Variable scores = scaled_scores(Q, K);
  const Variable weights = softmax(scores) * allowed_by(mask, scores);
  return {.output = matmul(weights, V), .weights = weights};
}

AttentionResult attention_with_masked_scores_of_zero(const Variable& Q, const Variable& K, const Variable& V,
                                                     const Mask& mask) {
  const Variable scores = scaled_scores(Q, K);
  const Variable weights = softmax(scores * allowed_by(mask, scores));
  return {.output = matmul(weights, V), .weights = weights};
}

namespace {

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

}  // namespace

Variable softmax_over_its_output(const Variable& x) { return apply(SoftmaxOverItsOutput{}, x); }

}  // namespace orrery::bugs
