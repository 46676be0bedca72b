// Chapter 8. The linear map of every layer. Bias, activation and dropout are applied to its product tile by tile.
//
//   linear        y = x W^T + b                          dx = dy W        dW = dy^T x        db = sum over rows of dy
//   linear_relu   y = dropout(relu(z)), z = x W^T + b    the same with dz = dy y'(z) in place of dy
// The composed form, matmul(x, W, Trans::b) + b, then relu, then dropout, is the one to read. In the fused form, each
// tile of the product (core/products/gemm.h) starts as the bias, and gets activation and dropout when it is complete; z
// is never stored. The derivative is read from the output: y'(z) is dropout's factor where y > 0, else 0. The wider
// the product, the less this saves (apps/measure/bench/README.md).
// Shapes: x [..., in], W [out, in], b [out], y [..., out].
// Read next: autograd/ops/fused/attention/tiled_attention.h
#include "autograd/ops/fused/linear/linear.h"

#include "autograd/apply.h"
#include "autograd/ops/formulas.h"
#include "autograd/ops/fused/linear/linear_rows.h"
#include "autograd/ops/row_dropout.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"

namespace orrery {
using namespace kernels;
namespace {

// The product and bias that the two operations share. Only `rows` of W and b are used.
struct Product {
  RowRange rows;
  Saved x, weight;

  // y = x W^T + b, then finish(tile, row number, row of y) for every row of every tile (linear_rows.h).
  template <class Finish = Nothing>
  Tensor forward(std::string_view name, const Tensor& in, const Tensor& W, const Tensor& b, const Finish& finish = {}) {
    check_linear(name, in, W, b);
    if (rows.end == -1) rows.end = W.size(0);
    check(rows.begin >= 0 && rows.begin <= rows.end && rows.end <= W.size(0), name, "rows ", rows.begin, " to ",
          rows.end, " are not rows of a weight ", W.shape());
    x = in;
    weight = W;
    const i64 out = rows.end - rows.begin, in_size = in.size(-1), count = in.shape().without_last().count();
    Tensor y = Tensor::empty(in.shape().without_last().plus(out), in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* bias = b.defined() ? b.data<T>() + rows.begin : nullptr;
      linear_rows<T>({in.data<T>(), count, in_size}, {W.data<T>() + rows.begin * in_size, out, in_size}, bias,
                     {y.write<T>(), count, out}, finish);
    });
    return y;
  }

  // dx = d W, dW = d^T x, db = the column sums of d, which the caller may give as `bias_gradient`.
  void backward(const Tensor& d, Grads& dx, Tensor bias_gradient = {}) {
    const Tensor d_rows = as_rows(d);
    if (dx.wanted(2)) {
      if (!bias_gradient.defined()) bias_gradient = sum(d_rows, {0});
      const GradientBuffer into = dx.into(2);
      Tensor part = rows_to_write(into);
      into.is_new ? copy_into(part, bias_gradient.reshape(part.shape()))
                  : add_in_place(part, bias_gradient.reshape(part.shape()));
    }
    if (dx.wanted(0)) {
      const GradientBuffer into = dx.into(0);
      Tensor to = as_rows(into.buffer);
      matmul_into(to, d_rows, weight.get().rows(rows.begin, rows.end), Trans::none, !into.is_new);
    }
    if (dx.wanted(1)) {
      const GradientBuffer into = dx.into(1);
      Tensor part = rows_to_write(into);
      matmul_into(part, d_rows, as_rows(x), Trans::a, !into.is_new);
    }
  }

 private:
  // The rows of a gradient that this product writes. If nothing has been written to it yet, sets the other rows to 0.
  Tensor rows_to_write(const GradientBuffer& into) const {
    const i64 all = into.buffer.size(0);
    if (into.is_new) {
      for (const RowRange& other : {RowRange{0, rows.begin}, RowRange{rows.end, all}}) {
        Tensor rest = into.buffer.rows(other.begin, other.end);
        if (rest.count() > 0) fill(rest, 0.0);
      }
    }
    return into.buffer.rows(rows.begin, rows.end);
  }
};

struct Linear {
  static constexpr std::string_view name = "linear";
  Product product;

  Tensor forward(const Tensor& x, const Tensor& W, const Tensor& b) { return product.forward(name, x, W, b); }
  void backward(const Tensor& dy, Grads& dx) { product.backward(dy, dx); }
};

// A row of dz: dy times dropout's factor where y > 0, else 0. It is added to `sums`, the sums of the columns.
template <class T> void derivative_row(i64 n, T factor, const T* y, const T* dy, T* dz, T* sums) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T d = y[i] > T{0} ? dy[i] * factor : T{0};
    dz[i] = d;
    sums[i] += d;
  }
}

struct LinearRelu {
  static constexpr std::string_view name = "linear_relu";
  RowDropout dropout;
  Product product;
  Saved y;

  Tensor forward(const Tensor& x, const Tensor& W, const Tensor& b) {
    dropout.check_usable(name);
    const i64 out = W.rank() == 2 ? W.size(0) : 0;  // a W of another rank is refused by `product`
    Tensor result = product.forward(name, x, W, b, [=, this](const Tile& tile, i64 row, auto* to) {
#pragma omp simd
      for (i64 i = tile.column; i < tile.column_end; ++i) to[i] = formula::Relu().value(to[i]);
      dropout.columns(row, out, tile.column, tile.column_end, to);  // tiles begin at a multiple of 8 columns
    });
    y = result;
    return result;
  }

  void backward(const Tensor& dy, Grads& dx) {
    Tensor dz = dx.reuse(dy), bias_gradient;
    const i64 out = dy.size(-1);
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *at = y.get().data<T>(), *from = dy.data<T>();
      T* to = dz.write<T>();
      const T factor = static_cast<T>(keep_scale(dropout.p));
      const auto derivative_rows = [=](i64 begin, i64 end, T* sums) {
        for (i64 i = begin * out; i < end * out; i += out) derivative_row(out, factor, at + i, from + i, to + i, sums);
      };
      bias_gradient = strip_sums<T>(1, dy.count() / std::max<i64>(1, out), out, derivative_rows);
    });
    product.backward(dz, dx, bias_gradient);
  }
};

}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias, RowRange rows) {
  return apply(Linear{{rows, {}, {}}}, x, weight, bias);
}
Variable linear_relu(const Variable& x, const Variable& weight, const Variable& bias, double p, const Draw& draw) {
  return apply(LinearRelu{{p, draw}, {}, {}}, x, weight, bias);
}

}  // namespace orrery
