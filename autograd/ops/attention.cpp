// Chapter 6. Scaled dot-product attention, in its textbook form.
//
// Paper, section 3.2.1: "The input consists of queries and keys of dimension d_k, and values of dimension d_v. We
// compute the dot products of the query with all keys, divide each by sqrt(d_k), and apply a softmax function to obtain
// the weights on the values."
//   Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V                                                     (1)
// Each line of it is an operation whose derivative is known; only the masked softmax is new:
//   y_j = e^{x_j} / sum over allowed l of e^{x_l} where j is allowed, else 0
//   dx_j = y_j (dy_j - <dy, y>) where j is allowed, else 0
// Keys and values behind a padding length are set to 0 first: 0 times NaN would otherwise bring back what the mask
// hides.
// Read next: nn/attention/attention.h
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/rows.h"
#include "core/mask.h"

namespace orrery {
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
        const i64 b = row / (h * n), head = row / n % h, i = row % n, limit = rule.limit(b, i, n, m);
        const T* from = x + row * m;
        T* to = out + row * m;
        std::fill(to + limit, to + m, T{0});
        if (!rule.has_table()) return softmax_row(from, to, limit);
        for (i64 j = 0; j < limit; ++j) {
          to[j] = rule.allowed(b, head, i, j, n, m) ? from[j] : -std::numeric_limits<T>::infinity();
        }
        softmax_row(to, to, limit);
      });
    });
    y = weights;
    return weights;
  }

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, map_rows(y, dy, name, softmax_derivative_row)); }
};

// Reads the padding of a mask alone: tables over queries do not have to fit keys.
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

}  // namespace

Variable masked_softmax(const Variable& scores, const Mask& mask) { return apply(MaskedSoftmax{mask, {}}, scores); }

Variable zero_padding(const Variable& x, const Mask& mask) {
  return mask.has_padding() ? apply(ZeroPadding{mask}, x) : x;
}

namespace {

// Dropout with a row of its mask for each key, as ops/packed_attention.cpp draws it: both forms drop the same weights.
Variable weights_dropped(const Variable& weights, double p, const Draw& draw) {
  constexpr std::array<i64, 4> keys_first{0, 1, 3, 2};
  return permute(dropout(permute(weights, keys_first), p, draw), keys_first);
}

}  // namespace

AttentionResult attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, double p,
                          const Draw& draw) {
  tape::explained("attention", std::array{&Q, &K, &V}, [&] {
    check(Q.shape().rank() == 4 && K.shape().rank() == 4 && V.shape().rank() == 4, "attention",
          "Q, K and V need shape [B, h, length, d], have ", Q.shape(), ", ", K.shape(), " and ", V.shape());
  });
  const double d_k = static_cast<double>(Q.size(-1));
  const Variable keys = zero_padding(K, mask), values = zero_padding(V, mask);
  const Variable scores = matmul(Q, keys, Trans::b) * (1.0 / std::sqrt(d_k));
  const Variable weights = masked_softmax(scores, mask);
  return {.output = matmul(p == 0 ? weights : weights_dropped(weights, p, draw), values), .weights = weights};
}

}  // namespace orrery
