// Chapter 4. Products of tensors: how a batched product is split into products of matrices.
//
// [..., m, k] times a shared [k, n] is one product, with all leading axes folded into the rows. If both factors have
// leading axes, there is one product for each pair of matrices.
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

// True if the right factor is shared and the leading axes of the left one can be folded into its rows.
bool folds(const Shape& b, Trans trans) { return b.rank() == 2 && !transposes_a(trans); }

template <class T> Mat<const T> matrix(const Tensor& x) { return {x.data<T>(), x.size(-2), x.size(-1)}; }

}  // namespace

Shape matmul_shape(const Shape& a, const Shape& b, Trans trans) {
  check(a.rank() >= 2 && b.rank() >= 2, "matmul", "needs matrices, got shapes ", a, " and ", b);
  const bool ta = transposes_a(trans), tb = transposes_b(trans);
  const i64 m = a[ta ? -1 : -2], k = a[ta ? -2 : -1], n = b[tb ? -2 : -1], k_b = b[tb ? -1 : -2];
  check(k == k_b, "matmul", "inner sizes differ (", k, " != ", k_b, ")");
  if (!folds(b, trans)) {
    check(a.without_last(2) == b.without_last(2), "matmul", "leading axes differ (", a.without_last(2), " and ",
          b.without_last(2), ")", b.rank() == 2 ? "; only an a that is not transposed can share one b" : "");
  }
  return a.without_last(2).plus(m).plus(n);
}

Tensor matmul(const Tensor& a, const Tensor& b, Trans trans) {
  Tensor c = Tensor::empty(matmul_shape(a.shape(), b.shape(), trans), a.dtype());
  matmul_into(c, a, b, trans, false);
  return c;
}

void matmul_into(Tensor& c, const Tensor& a, const Tensor& b, Trans trans, bool accumulate) {
  const Shape shape = matmul_shape(a.shape(), b.shape(), trans);
  check(c.shape() == shape, "matmul", "the result has shape ", c.shape(), ", needs ", shape);
  check(a.dtype() == b.dtype(), "matmul", "dtypes differ (", a.dtype(), " and ", b.dtype(), ")");
  check(a.dtype() == c.dtype(), "matmul", "the result is ", c.dtype(), ", needs ", a.dtype());
  check(!c.overlaps(a) && !c.overlaps(b), "matmul", "the result must not share memory with a factor");
  dispatch_floating(a.dtype(), "matmul", [&](auto t) {
    using T = decltype(t);
    const Mat<T> first{c.write<T>(), c.size(-2), c.size(-1)};
    if (folds(b.shape(), trans)) {
      const i64 rows = a.shape().without_last().count();
      gemm<T>({a.data<T>(), rows, a.size(-1)}, matrix<T>(b), {first.data, rows, c.size(-1)}, trans, accumulate);
    } else if (a.rank() == 2) {
      gemm<T>(matrix<T>(a), matrix<T>(b), first, trans, accumulate);
    } else {
      const auto step = [](const Tensor& x) { return x.size(-2) * x.size(-1); };
      gemm_batch<T>(a.shape().without_last(2).count(), {matrix<T>(a), step(a)}, {matrix<T>(b), step(b)},
                    {first, step(c)}, trans, accumulate);
    }
  });
}

}  // namespace orrery
