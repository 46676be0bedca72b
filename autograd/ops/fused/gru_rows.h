// Chapter 8. One step of a gated recurrent unit for one row of the batch, forward and backward.
//
// A row of gates has three parts of H numbers each, in PyTorch's order r, z, n. Formulas: autograd/ops/fused/gru.cpp.
#pragma once

#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"
#include "core/machine/math.h"
#include "core/products/gemm.h"

namespace orrery::kernels {

/// For loops over rows of H units: a unit takes about as long as this many additions.
inline constexpr i64 gru_unit_cost = 16;

/// after = h_t from before = h_{t-1}, a = a_t [3 H] and b = b_t [3 H]. What backward needs is kept: b becomes
/// [r | z | b_n], and n gets n_t [H].
template <class T>
static void gru_row(i64 H, const T* a, T* b, T* n, const T* before, T* after) {
  T *r = b, *z = b + H;
  const T* b_n = b + 2 * H;
#pragma omp simd
  for (i64 i = 0; i < H; ++i) {
    r[i] = math::sigmoid(a[i] + r[i]);
    z[i] = math::sigmoid(a[H + i] + z[i]);
    n[i] = math::tanh(a[2 * H + i] + r[i] * b_n[i]);
    after[i] = n[i] + z[i] * (before[i] - n[i]);
  }
}

/// Turns what `gru_row` kept in b into db = dL/db_t, writes da = dL/da_t, and turns dh = dL/dh_t into its direct part
/// of dL/dh_{t-1}; the part through b_t is db W.
template <class T>
static void gru_derivative_row(i64 H, const T* before, const T* n, T* b, T* da, T* dh) {
#pragma omp simd
  for (i64 i = 0; i < H; ++i) {
    const T r = b[i], z = b[H + i], d = dh[i];
    const T dn = d * (T{1} - z) * (T{1} - n[i] * n[i]);
    const T dr = dn * b[2 * H + i] * r * (T{1} - r), dz = d * (before[i] - n[i]) * z * (T{1} - z);
    da[i] = b[i] = dr;
    da[H + i] = b[H + i] = dz;
    da[2 * H + i] = dn;
    b[2 * H + i] = dn * r;
    dh[i] = d * z;
  }
}

/// The sums down the columns of x: [columns].
template <class T>
static Tensor column_sums(Mat<const T> x) {
  return strip_sums<T>(1, x.rows, x.cols,
                       [=](i64 begin, i64 end, T* sums) {
                         for (i64 row = begin; row < end; ++row) add_to(x.cols, x.data + row * x.stride, sums);
                       })
      .reshape({x.cols});
}

}  // namespace orrery::kernels
