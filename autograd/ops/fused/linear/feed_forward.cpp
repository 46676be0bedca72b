// Chapter 8. The feed-forward network with GELU as one operation, which keeps one inner tensor instead of two.
//
//   z = x W1^T + b1       a = dropout(gelu(z)), or gelu_tanh(z)       y = a W2^T + b2
//   da = dy W2            dz = dropout(da) gelu'(z)                   dx = dz W1
//   dW2 = dy^T a, db2 = sum over rows of dy                           dW1 = dz^T x, db1 = sum over rows of dz
// The composed form (linear, gelu, dropout, linear) is the one to read. It keeps z for gelu' and a for dW2, by far the
// largest activations of a GPT. Here only z is kept, and backward computes a again. gelu(z) and gelu'(z) need the same
// exponential, so both cost about as much as gelu'(z) alone (recomputation as in Chen et al. 2016, "Training Deep Nets
// with Sublinear Memory Cost"). Forward and backward work on chunks of rows, whose a and dz stay in a cache that all
// cores share. The whole takes as long as the composed form and needs less memory (apps/measure/bench/README.md).
// Shapes: x [..., d_model], W1 [d_ff, d_model], b1 [d_ff], W2 [d_out, d_ff], b2 [d_out], y [..., d_out]; biases may be
// undefined.
#include "autograd/ops/fused/linear/feed_forward.h"

#include "autograd/apply.h"
#include "autograd/ops/formulas.h"
#include "autograd/ops/fused/linear/linear_rows.h"
#include "autograd/ops/row_dropout.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"

namespace orrery {
using namespace kernels;
namespace {

// Replaces z by gelu(z) and da by dz, and adds dz to `sums`.
template <class Formula, class T> void differentiate_row(i64 n, T* z, T* da, T* sums) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T at = z[i], d = da[i] * Formula().derivative(at);
    z[i] = Formula().value(at);
    da[i] = d;
    sums[i] += d;
  }
}

template <class Formula> struct FeedForward {
  static constexpr std::string_view name =
      std::is_same_v<Formula, formula::Gelu> ? "gelu_feed_forward" : "gelu_tanh_feed_forward";
  enum Input : size_t { of_x, of_W1, of_b1, of_W2, of_b2 };

  bool recorded;  // backward may follow, so z has to be kept
  RowDropout dropout;
  Saved x{}, W1{}, W2{};
  Tensor z{};  // belongs to this operation alone: backward overwrites it

  Tensor forward(const Tensor& in, const Tensor& weight1, const Tensor& b1, const Tensor& weight2, const Tensor& b2) {
    dropout.check_usable(name);
    check_linear(name, in, weight1, b1);
    const i64 rows = in.shape().without_last().count(), d_model = in.size(-1), d_ff = weight1.size(0);
    const i64 chunk = row_chunk(rows, d_ff, in.dtype());
    Tensor inner = Tensor::empty({chunk, d_ff}, in.dtype());
    check_linear(name, inner, weight2, b2);
    const i64 d_out = weight2.size(0);
    x = in;
    W1 = weight1;
    W2 = weight2;
    if (recorded) z = Tensor::empty({rows, d_ff}, in.dtype());
    Tensor y = Tensor::empty(in.shape().without_last().plus(d_out), in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const Mat<const T> first(weight1.data<T>(), d_ff, d_model), second(weight2.data<T>(), d_out, d_ff);
      const T *bias1 = data_or_null<T>(b1), *bias2 = data_or_null<T>(b2);
      T* a = inner.write<T>();
      for (i64 begin = 0; begin < rows; begin += chunk) {
        const i64 count = std::min(chunk, rows - begin);
        const auto activate = [=, this](const Tile& tile, i64 row, const T* from) {
          T* to = a + row * d_ff;
#pragma omp simd
          for (i64 i = tile.column; i < tile.column_end; ++i) to[i] = Formula().value(from[i]);
          dropout.columns(begin + row, d_ff, tile.column, tile.column_end, to);  // from a multiple of 8 columns
        };
        T* sum = recorded ? z.write<T>() + begin * d_ff : a;
        linear_rows<T>({in.data<T>() + begin * d_model, count, d_model}, first, bias1, {sum, count, d_ff}, activate);
        linear_rows<T>({a, count, d_ff}, second, bias2, {y.write<T>() + begin * d_out, count, d_out});
      }
    });
    return y;
  }

  // In each chunk, the weights' gradients come before that of x: x may itself be one of the weights, and its gradient
  // is written chunk by chunk.
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor x_rows = as_rows(x), dy_rows = as_rows(dy);
    if (dx.keeps()) z = z.clone();
    const i64 rows = z.size(0), d_ff = z.size(1), chunk = row_chunk(rows, d_ff, z.dtype());
    const Tensor inner = Tensor::empty({chunk, d_ff}, z.dtype());
    Tensor db1;
    bool x_is_new = false;
    i64 begin = 0;
    do {
      const i64 end = std::min(rows, begin + chunk);
      const Tensor dy_part = dy_rows.rows(begin, end), x_part = x_rows.rows(begin, end);
      Tensor a = z.rows(begin, end), dz = inner.rows(0, end - begin);
      matmul_into(dz, dy_part, W2, Trans::none, false);
      const Tensor sums = differentiate(begin, a, dz);
      if (dx.wanted(of_W2)) dx.into(of_W2).gemm(dy_part, a, Trans::a);
      if (dx.wanted(of_W1)) dx.into(of_W1).gemm(dz, x_part, Trans::a);
      if (dx.wanted(of_x)) {
        const GradientBuffer into = dx.into(of_x);
        if (begin == 0) x_is_new = into.is_new;  // also true of the rows of later chunks, which are not written yet
        Tensor to = as_rows(into.buffer).rows(begin, end);
        matmul_into(to, dz, W1, Trans::none, !x_is_new);
      }
      if (begin == 0)
        db1 = sums;
      else
        add_in_place(db1, sums);
      begin = end;
    } while (begin < rows);
    if (dx.wanted(of_b1)) dx.add(of_b1, std::move(db1));
    if (dx.wanted(of_b2)) dx.add(of_b2, sum(dy_rows, {0}));
  }

 private:
  // Turns rows of z, starting at row `begin`, into rows of a, and da into dz. Returns the column sums of dz.
  Tensor differentiate(i64 begin, Tensor& rows_of_z, Tensor& da) const {
    const i64 d_ff = da.size(1);
    return dispatch_floating(da.dtype(), name, [&](auto t) {
      using T = decltype(t);
      T *at = rows_of_z.write<T>(), *d = da.write<T>();
      const auto differentiate_rows = [=, this](i64 first, i64 last, T* sums) {
        for (i64 row = first; row < last; ++row) {
          T *z_row = at + row * d_ff, *d_row = d + row * d_ff;
          dropout.columns(begin + row, d_ff, 0, d_ff, d_row);
          differentiate_row<Formula>(d_ff, z_row, d_row, sums);
          dropout.columns(begin + row, d_ff, 0, d_ff, z_row);
        }
      };
      return strip_sums<T>(1, da.size(0), d_ff, differentiate_rows).reshape({d_ff});
    });
  }
};

template <class Formula>
Variable feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2, const Variable& b2,
                      double p, const Draw& draw) {
  return apply(FeedForward<Formula>{tape::records(std::array{&x, &W1, &b1, &W2, &b2}), {p, draw}}, x, W1, b1, W2, b2);
}

}  // namespace

Variable gelu_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                           const Variable& b2, double p, const Draw& draw) {
  return feed_forward<formula::Gelu>(x, W1, b1, W2, b2, p, draw);
}
Variable gelu_tanh_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                                const Variable& b2, double p, const Draw& draw) {
  return feed_forward<formula::GeluTanh>(x, W1, b1, W2, b2, p, draw);
}

}  // namespace orrery
