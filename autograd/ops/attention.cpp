// Chapter 6. Scaled dot-product attention, in its textbook form.
//
// Paper, section 3.2.1: "The input consists of queries and keys of dimension d_k, and values of dimension d_v. We
// compute the dot products of the query with all keys, divide each by sqrt(d_k), and apply a softmax function to obtain
// the weights on the values."
//   Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V                                                     (1)
// Each step of it is an operation whose derivative is known; only the masked softmax is new:
//   y_j = e^{x_j} / sum over allowed l of e^{x_l} where j is allowed, else 0
//   dx_j = y_j (dy_j - <dy, y>) where j is allowed, else 0
// A bias that is added to the scores before the softmax can express the distance between query and key (T5, Raffel et
// al. 2020, section 2.1; ALiBi, Press et al. 2022, section 3). Keys and values beyond a padding length are set to 0
// first: 0 times NaN would otherwise bring back what the mask hides.
// `attention_by_loops` is formula (1) without matrices, and the tests compare the others with it.
// Read next: nn/attention/attention.h
#include "autograd/ops/attention.h"

#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/softmax_rows.h"
#include "core/kernels/elementwise.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

struct MaskedSoftmax {
  static constexpr std::string_view name = "masked_softmax";
  Mask mask;
  Saved y;

  Tensor forward(const Tensor& scores) {
    check(scores.rank() == 4, name, "scores need shape [B, h, n, m], have ", scores.shape());
    const i64 B = scores.size(0), h = scores.size(1), n = scores.size(2), m = scores.size(3);
    mask.check_fits(B, h, n, m);
    Tensor weights = Tensor::empty(scores.shape(), scores.dtype());
    dispatch_floating(scores.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* x = scores.data<T>();
      T* out = weights.write<T>();
      for_rows(B * h * n, m, [=, &rule = mask](i64 row) {
        const i64 b = row / (h * n), head = row / n % h, i = row % n;
        const KeyRange keys = rule.range(b, i, n, m);
        const T* from = x + row * m + keys.first;
        T *all = out + row * m, *seen = all + keys.first;
        std::fill(all, seen, T{0});
        std::fill(all + keys.limit, all + m, T{0});
        if (!rule.has_table()) return softmax_row(from, seen, keys.count());
        std::copy_n(from, keys.count(), seen);
        rule.hide({b, head, i, i + 1, n, m}, keys, seen);
        softmax_row(seen, seen, keys.count());
      });
    });
    y = weights;
    return weights;
  }

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, map_rows(y, dy, name, softmax_derivative_row)); }
};

// Uses only the padding of the mask; its tables, which also depend on queries, need not fit.
struct ZeroPadding {
  static constexpr std::string_view name = "zero_padding";
  Mask mask;

  Tensor cleared(const Tensor& x) const {
    const i64 B = x.size(0), h = x.size(1), m = x.size(2), d = x.size(3);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* in = x.data<T>();
      T* out = y.write<T>();
      for_rows(B * h, m * d, [=, &rule = mask](i64 i) {
        const i64 kept = rule.length(i / h, m) * d;
        std::copy_n(in + i * m * d, kept, out + i * m * d);
        std::fill_n(out + i * m * d + kept, m * d - kept, T{0});
      });
    });
    return y;
  }
  Tensor forward(const Tensor& x) {
    mask.check_padding_fits(dims<4>(x, name)[0], x.size(2));
    return cleared(x);
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, cleared(dy)); }
};

// A bias for each distance, expanded to every query and key: y_hij = bias_h,e with e = j - i + n - 1.
//   dbias_he = sum of dy_hij over all i, j with that e, in the order of i
struct ByDistance {
  static constexpr std::string_view name = "by_distance";
  i64 n, m;

  Tensor forward(const Tensor& bias) {
    const auto [h, count] = dims<2>(bias, name);
    check(n >= 0 && m >= 0 && count == distances(n, m), name, n, " queries and ", m, " keys need a bias of shape [h, ",
          distances(n, m), "], got ", bias.shape());
    Tensor y = Tensor::empty({h, n, m}, bias.dtype());
    dispatch_floating(bias.dtype(), name, [&, count = count](auto t) {
      using T = decltype(t);
      const T* from = bias.data<T>();
      T* to = y.write<T>();
      for_rows(y.size(0) * n, m,
               [=, n = n, m = m](i64 row) { std::copy_n(from + row / n * count + n - 1 - row % n, m, to + row * m); });
    });
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const i64 h = dy.size(0), count = distances(n, m);
    Tensor sums = Tensor::empty({h, count}, f64);
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* from = dy.data<T>();
      double* to = sums.write<double>();
      for_rows(h, n * m, [=, n = n, m = m](i64 head) {
        double* sum = to + head * count;
        std::fill_n(sum, count, 0.0);
        for (i64 i = 0; i < n; ++i) {
          for (i64 j = 0; j < m; ++j) sum[j - i + n - 1] += static_cast<double>(from[(head * n + i) * m + j]);
        }
      });
    });
    dx.add(0, sums.to(dy.dtype()));
  }
};

}  // namespace

Variable by_distance(const Variable& bias, i64 n, i64 m) { return apply(ByDistance{n, m}, bias); }

Variable masked_softmax(const Variable& scores, const Mask& mask) { return apply(MaskedSoftmax{mask, {}}, scores); }

Variable zero_padding(const Variable& x, const Mask& mask) {
  return mask.has_padding() ? apply(ZeroPadding{mask}, x) : x;
}

namespace {

// Dropout in whose mask each key is a row, as in autograd/ops/fused/attention/packed_attention.cpp, so that both forms
// drop the same weights.
Variable weights_dropped(const Variable& weights, double p, const Draw& draw) {
  constexpr std::array<i64, 4> keys_first{0, 1, 3, 2};
  return permute(dropout(permute(weights, keys_first), p, draw), keys_first);
}

}  // namespace

AttentionByLoops attention_by_loops(const Tensor& Q, const Tensor& K, const Tensor& V, const Mask& mask) {
  const auto [B, h, n, d_k] = dims<4>(Q, "attention");
  const i64 m = K.size(2), d_v = V.size(3);
  Tensor y = zeros({B, h, n, d_v}, f64), P = zeros({B, h, n, m}, f64);
  for (i64 row = 0; row < B * h * n; ++row) {
    const i64 b = row / (h * n), head = row / n % h, i = row % n;
    double total = 0;
    for (i64 j = 0; j < m; ++j) {
      if (!mask.allowed(b, head, i, j, n, m)) continue;
      double score = 0;
      for (i64 k = 0; k < d_k; ++k) score += Q(b, head, i, k) * K(b, head, j, k);
      P(b, head, i, j) = std::exp(score / std::sqrt(static_cast<double>(d_k)));
      total += P(b, head, i, j);
    }
    for (i64 j = 0; j < m; ++j) {
      if (!mask.allowed(b, head, i, j, n, m)) continue;  // if none is allowed, y is 0
      P(b, head, i, j) /= total;
      for (i64 c = 0; c < d_v; ++c) y(b, head, i, c) += P(b, head, i, j) * V(b, head, j, c);
    }
  }
  return {.output = y, .weights = P};
}

AttentionResult attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask,
                          const AttentionWeightOptions& options) {
  tape::explained("attention", std::array{&Q, &K, &V}, [&] {
    check(Q.shape().rank() == 4 && K.shape().rank() == 4 && V.shape().rank() == 4, "attention",
          "Q, K and V need shape [B, h, length, d], have ", Q.shape(), ", ", K.shape(), " and ", V.shape());
    check(Q.size(-1) > 0, "attention", "needs queries of at least one number, Q has shape ", Q.shape());
  });
  const double d_k = static_cast<double>(Q.size(-1));
  const Variable keys = zero_padding(K, mask), values = zero_padding(V, mask);
  Variable scores = matmul(Q, keys, Trans::b) * (1.0 / std::sqrt(d_k));
  if (const Variable& bias = options.bias; bias.defined())
    scores = scores + (bias.shape().rank() == 2 ? by_distance(bias, Q.size(2), K.size(2)) : bias);
  const Variable weights = masked_softmax(scores, mask);
  const Variable kept = options.p == 0 ? weights : weights_dropped(weights, options.p, options.draw);
  return {.output = matmul(kept, values), .weights = weights};
}

}  // namespace orrery
