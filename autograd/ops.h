// Chapter 2. The catalogue: every differentiable operation, one line each.
//
// Each has its formula, derivative and code in one file under autograd/ops/, its samples in autograd/check/samples.cpp,
// and its row in `orrery gradcheck`. To add one, write a struct with forward and backward, a line here, a sample and a
// test. In shapes, [...] stands for any axes. Elementwise operations of two inputs broadcast like NumPy.
// Serves: autograd/elementwise.h
#pragma once

#include <limits>
#include <span>

#include "autograd/variable.h"
#include "core/kernels/reduce.h"
#include "core/products/gemm.h"
#include "core/random.h"

namespace orrery {

class Mask;

// Arithmetic (ops/arithmetic.cpp).
Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
Variable neg(const Variable& x);
Variable scale(const Variable& x, double factor);
inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
inline Variable operator-(const Variable& x) { return neg(x); }
inline Variable operator*(const Variable& x, double factor) { return scale(x, factor); }
inline Variable operator*(double factor, const Variable& x) { return scale(x, factor); }
/// x + c for a number c.
Variable shift(const Variable& x, double c);
inline Variable operator+(const Variable& x, double c) { return shift(x, c); }
inline Variable operator+(double c, const Variable& x) { return shift(x, c); }
inline Variable operator-(const Variable& x, double c) { return shift(x, -c); }
inline Variable operator-(double c, const Variable& x) { return shift(neg(x), c); }
inline Variable operator/(const Variable& x, double c) { return scale(x, 1.0 / c); }

// Elementwise functions (ops/elementwise.cpp, ops/activation.cpp).
Variable pow(const Variable& x, double exponent);
Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable tanh(const Variable& x);
Variable sigmoid(const Variable& x);
Variable relu(const Variable& x);
Variable gelu(const Variable& x);       // exact: x Phi(x)
Variable gelu_tanh(const Variable& x);  // GPT-2's approximation
Variable silu(const Variable& x);
/// a sigmoid(b) for x = [a | b], [..., 2 C] to [..., C] (ops/glu.cpp).
Variable glu(const Variable& x);

// Reductions (ops/reduce.cpp) over the given axes, which are dropped, or kept with size 1. No axes means all.
Variable sum(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
Variable mean(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
// If several maxima are equal, they share the gradient evenly.
Variable max(const Variable& x, const Axes& axes = {}, bool keep_axes = false);

// Products (ops/matmul.cpp): [..., m, k] with [k, n] or [..., k, n] gives [..., m, n].
Variable matmul(const Variable& a, const Variable& b, Trans trans = Trans::none);

// Moving elements (ops/layout.cpp).
Variable reshape(const Variable& x, const Shape& shape);
Variable permute(const Variable& x, std::span<const i64> order);
inline Variable permute(const Variable& x, std::initializer_list<i64> order) {
  return permute(x, std::span(order.begin(), order.size()));
}
Variable concat(std::span<const Variable> parts, i64 axis);
inline Variable concat(std::initializer_list<Variable> parts, i64 axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
Variable slice(const Variable& x, i64 axis, i64 begin, i64 end = std::numeric_limits<i64>::max());
/// Two parts of `x` along `axis`: the first `size` elements and the rest.
std::array<Variable, 2> split(const Variable& x, i64 size, i64 axis);
/// Three equal parts along `axis`: Q, K and V of a packed product.
std::array<Variable, 3> split3(const Variable& x, i64 axis);

/// The rows of `weight` [K, D] that `ids` (i32 of any shape) select: [ids..., D]. An id outside [0, K) is an error
/// (ops/embedding.cpp).
Variable embedding(const Variable& weight, const Tensor& ids);

/// e^{x_i} / sum_j e^{x_j} over the last axis (ops/softmax.cpp).
Variable softmax(const Variable& x);
Variable log_softmax(const Variable& x);
/// Softmax of scores [B, h, n, m] over the keys that `mask` allows. All other keys get 0. A row in which no key is
/// allowed is 0.
Variable masked_softmax(const Variable& scores, const Mask& mask);

/// The divisor of layer normalisation. PyTorch and the paper's authors use sqrt(var + eps). Some tutorials use std +
/// eps; the Annotated Transformer uses std + eps with the variance over n - 1.
enum class LayerNormForm { root_of_variance_plus_eps, std_plus_eps, unbiased_std_plus_eps };

/// (x - mean) / deviation * weight + bias over the last axis [..., D]; weight and bias [D], each may be undefined
/// (ops/layer_norm.cpp).
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps = 1e-5,
                    LayerNormForm form = LayerNormForm::root_of_variance_plus_eps);
/// x / sqrt(mean of x^2 + eps) over the last axis (ops/rms_norm.cpp). nn::RmsNorm multiplies it by a weight.
Variable rms_norm(const Variable& x, double eps = 1e-6);

/// Sets each element to 0 with probability p and scales the others such that the mean is preserved (ops/dropout.cpp).
Variable dropout(const Variable& x, double p, const Draw& draw);

/// What attention returns: `output` [B, h, n, d_v], and `weights` [B, h, n, m], the attention weights before dropout.
struct AttentionResult {
  Variable output, weights;
};
/// softmax(Q K^T / sqrt(d_k)) V, step by step as in the paper, section 3.2.1 (ops/attention.cpp).
/// Q [B, h, n, d_k], K [B, h, m, d_k], V [B, h, m, d_v]. The weights are dropped out with probability p. The `bias` is
/// added to the scores. It is either by distance, [h, n + m - 1] (see `by_distance`), or broadcasts to [B, h, n, m].
AttentionResult attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, double p = 0,
                          const Draw& draw = {}, const Variable& bias = {});
/// Expands a bias by distance, [h, n + m - 1], to all pairs of n queries and m keys, [h, n, m]: query i and key j get
/// entry j - i + n - 1. Since the last query is at the position of the last key, entry e belongs to keys that stand
/// e - m + 1 positions after the query.
Variable by_distance(const Variable& bias, i64 n, i64 m);
/// x [B, h, m, d] with 0 in the rows behind the padding lengths of `mask`, so that their contents never reach a
/// product.
Variable zero_padding(const Variable& x, const Mask& mask);

/// The two forms of label smoothing: eps is spread over all K classes (PyTorch), or over the K - 1 wrong ones
/// (fairseq).
enum class Smoothing { all_classes, wrong_classes };
/// What the summed loss is divided by: the number of targets that count; nothing; the caller's divisor.
enum class Reduction { mean, sum, divisor };
struct CrossEntropyOptions {
  i32 ignore_index = -100;  ///< targets with this id do not count
  double label_smoothing = 0;
  Smoothing smoothing = Smoothing::all_classes;
  Reduction reduction = Reduction::mean;
  double divisor = 1;  ///< for Reduction::divisor; 0 only if no target counts. Makes k micro-batches equal to one batch
};
/// -sum_k q_k log softmax(logits)_k, summed over the targets that count; logits [..., K], targets i32 [...]. If no
/// target counts, loss and gradient are 0 (ops/cross_entropy.cpp).
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

// Fused operations, which layers call. Each does in one pass what two to six of the operations above do. The composed
// forms are the ones to read; tests compare both.

/// Rows [begin, end) of a weight; end = -1 means all.
struct RowRange {
  i64 begin = 0, end = -1;
};
/// x W^T + b, with weight [out, in] and bias [out], which may be undefined. With `rows`, only these rows of weight and
/// bias are used (ops/fused/linear.cpp).
Variable linear(const Variable& x, const Variable& weight, const Variable& bias, RowRange rows = {});
/// dropout(relu(linear(x))).
Variable linear_relu(const Variable& x, const Variable& weight, const Variable& bias, double p = 0,
                     const Draw& draw = {});
/// linear(dropout(gelu(linear(x, W1, b1))), W2, b2), and the same with gelu_tanh. Biases may be undefined
/// (ops/fused/feed_forward.cpp).
Variable gelu_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                           const Variable& b2, double p = 0, const Draw& draw = {});
Variable gelu_tanh_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                                const Variable& b2, double p = 0, const Draw& draw = {});
/// cross_entropy(linear(x), targets) for a few hundred rows at a time: the logits never exist as a whole
/// (ops/fused/linear_cross_entropy.cpp).
Variable linear_cross_entropy(const Variable& x, const Variable& weight, const Variable& bias, const Tensor& targets,
                              const CrossEntropyOptions& options = {});
/// x + dropout(f), for x and f of the same shape (ops/fused/residual.cpp).
Variable residual(const Variable& x, const Variable& f, double p = 0, const Draw& draw = {});
/// layer_norm(x + dropout(f)).
Variable residual_norm(const Variable& x, const Variable& f, const Variable& weight, const Variable& bias,
                       double eps = 1e-5, LayerNormForm form = LayerNormForm::root_of_variance_plus_eps, double p = 0,
                       const Draw& draw = {});
/// dropout(factor * embedding(weight, ids) + positions): ids [B, T], positions [at least T, D] (ops/embedding.cpp).
Variable embedding_sum(const Variable& weight, const Tensor& ids, double factor, const Variable& positions,
                       double p = 0, const Draw& draw = {});
/// Attention of all heads on a packed product, as projections return it: from qkv [B, n, h (2 d_k + d_v)] to
/// [B, n, h d_v], without copying heads (ops/fused/packed_attention.cpp). More than 512 keys are processed in tiles, so
/// that memory grows linearly with the length (ops/fused/tiled_attention.h). The `bias` is by distance (see
/// `by_distance`).
Variable packed_attention(const Variable& qkv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask, double p = 0,
                          const Draw& draw = {}, const Variable& bias = {});
/// The same with the queries of one sequence, [B, n, h d_k], and the keys and values of another, [B, m, h (d_k + d_v)].
Variable packed_attention(const Variable& q, const Variable& kv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask,
                          double p = 0, const Draw& draw = {}, const Variable& bias = {});

/// Zeros that a convolution assumes around a sequence: on both sides, so that an output sees as many positions before
/// as behind its own; before it, so that it sees none behind; or none, and then there are width - 1 fewer outputs.
enum class ConvolutionPadding { same, causal, none };
/// Convolution over positions (ops/fused/convolution.cpp): x [B, T, C_in] to [B, T, C_out], with weight [C_out, C_in,
/// width] and bias [C_out], which may be undefined. Of the mask, only the padding counts: inputs behind it count as 0.
Variable convolution(const Variable& x, const Variable& weight, const Variable& bias, ConvolutionPadding padding,
                     const Mask& mask);

/// A gated recurrent unit at all positions, from the first to the last, or with `reverse` from the last to the first
/// (ops/fused/gru.cpp). The gates [B, T, 3 H] are W_x x + b_x, in the order r, z, n; h0 [B, H], 0 if undefined;
/// W [3 H, H], b [3 H], which may be undefined. Returns the states [B, T, H]. Of the mask, only the padding counts: a
/// state behind it is that of the row's last position (first, with `reverse`: h0).
Variable gru(const Variable& gates, const Variable& h0, const Variable& W, const Variable& b, const Mask& mask,
             bool reverse = false);

/// What `attentive_gru` returns: states [B, T, H], and contexts [B, T, M], what attention read at each position.
struct AttentiveGruResult {
  Variable states, contexts;
};
/// The parameters of `attentive_gru`, for H units, queries of size A, and a memory of size M.
struct AttentiveGruParameters {
  Variable W;          ///< [3 H, H]: gates from the state
  Variable b;          ///< [3 H], which may be undefined
  Variable W_query;    ///< [A, H]: a query from the state
  Variable v;          ///< [A]: a score from tanh(query + key)
  Variable W_context;  ///< [3 H, M]: gates from what attention read
};
/// The same with additive attention to a memory [B, S, M] with keys [B, S, A] before each step
/// (ops/fused/attentive_gru.cpp): s_t from s_{t-1}, gates_t + W_context c_t, with c_t the context of s_{t-1}. Of the
/// mask, only the padding of the memory counts. If `weights` is given, it receives the attention weights [B, T, S].
AttentiveGruResult attentive_gru(const Variable& gates, const Variable& s0, const Variable& keys,
                                 const Variable& memory, const AttentiveGruParameters& parameters, const Mask& mask,
                                 Tensor* weights = nullptr);

}  // namespace orrery
