// Chapter 8. The residual connection: the output of a sub-layer, after dropout, is added to its input and normalised.
//
// Paper, sections 3.1 and 5.4: "the output of each sub-layer is LayerNorm(x + Sublayer(x))", "We apply dropout to the
// output of each sub-layer, before it is added to the sub-layer input and normalized."
//   residual        s = x + m f                    m_i: dropout's factor of element i, 0 or 1 / (1 - p)
//   residual_norm   y = layer_norm(s)              ds as in ops/layer_norm.cpp; dx = ds, df = m ds
// The composed form, layer_norm(x + dropout(f)), makes three passes over memory forward and two back. In the fused form
// a row stays in the nearest cache, and backward draws the factors again. Only s is kept in memory
// (apps/measure/bench/README.md).
// Shapes: x, f, y [..., D]; weight, bias [D].
#include "autograd/ops/fused/linear/residual.h"

#include "autograd/apply.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/row_dropout.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

void check_summands(std::string_view name, const Tensor& x, const Tensor& f) {
  check(x.shape() == f.shape(), name, "shapes differ (", x.shape(), " and ", f.shape(), ")");
  check(x.rank() >= 1, name, "needs at least one axis");
}

// Rows [begin, end) of s = x + m f, n numbers each.
template <class T>
void add_dropped_rows(const RowDropout& dropout, i64 begin, i64 end, i64 n, const T* x, const T* f, T* s) {
  dropout.rows(begin, end, n, f + begin * n, s + begin * n);
  add_to((end - begin) * n, x + begin * n, s + begin * n);
}

struct Residual {
  static constexpr std::string_view name = "residual";
  RowDropout dropout;

  Tensor forward(const Tensor& x, const Tensor& f) {
    check_summands(name, x, f);
    dropout.check_usable(name);
    Tensor s = Tensor::empty(x.shape(), x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const i64 n = x.size(-1);
      const T *a = x.data<T>(), *b = f.data<T>();
      T* out = s.write<T>();
      for_row_groups(x.shape().without_last().count(), n,
                     [=, this](i64 begin, i64 end) { add_dropped_rows(dropout, begin, end, n, a, b, out); });
    });
    return s;
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(1)) dx.add(1, dropout.p == 0 ? dy : dropout.applied(dy, Tensor::empty(dy.shape(), dy.dtype())));
    dx.add(0, dy);
  }
};

struct ResidualNorm {
  static constexpr std::string_view name = "residual_norm";
  double eps;
  LayerNormForm form;
  RowDropout dropout;
  Saved s, weight, statistics;  // statistics: a RowStatistics for each row, [rows, 4]

  Tensor forward(const Tensor& x, const Tensor& f, const Tensor& w, const Tensor& b) {
    check_summands(name, x, f);
    dropout.check_usable(name);
    check_norm(name, x, w, b, eps, form);
    const i64 n = x.size(-1), count = x.shape().without_last().count();
    Tensor y = Tensor::empty(x.shape(), x.dtype()), sum = Tensor::empty(x.shape(), x.dtype());
    Tensor kept = Tensor::empty({count, 4}, x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *a = x.data<T>(), *c = f.data<T>(), *gain = data_or_null<T>(w), *shift = data_or_null<T>(b);
      T *out = y.write<T>(), *total = sum.write<T>(), *table = kept.write<T>();
      for_row_groups(count, n, [=, this](i64 begin, i64 end) {
        add_dropped_rows(dropout, begin, end, n, a, c, total);
        store_statistics(total, begin, end, n, eps, form, table);
        normalize_rows(total, begin, end, n, table, gain, shift, out);
      });
    });
    s = sum;
    weight = w;
    statistics = kept;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const i64 n = dy.size(-1);
    const bool drops = dropout.p > 0 && dx.wanted(1);
    Tensor ds = dx.reuse(dy), df = drops ? Tensor::empty(dy.shape(), dy.dtype()) : ds, sums;
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* whole = ds.data<T>();
      T* dropped = df.write<T>();
      const auto drop_rows = [=, this](i64 begin, i64 end) {
        if (drops) dropout.rows(begin, end, n, whole + begin * n, dropped + begin * n);
      };
      sums = norm_backward<T>(s, statistics, weight, dy, ds, drop_rows);
    });
    dx.add(1, std::move(df));
    dx.add(0, std::move(ds));
    dx.add(2, sums.reshape({2, n}).rows(0, 1).reshape({n}));
    dx.add(3, sums.reshape({2, n}).rows(1, 2).reshape({n}));
  }
};

}  // namespace

Variable residual(const Variable& x, const Variable& f, double p, const Draw& draw) {
  return apply(Residual{{p, draw}}, x, f);
}

Variable residual_norm(const Variable& x, const Variable& f, const Variable& weight, const Variable& bias,
                       const ResidualNormOptions& options) {
  const RowDropout dropout{options.p, options.draw};
  return apply(ResidualNorm{options.eps, options.form, dropout, {}, {}, {}}, x, f, weight, bias);
}

}  // namespace orrery
