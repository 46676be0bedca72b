// Chapter 8. The product of every linear map, with work done on its rows while they are in the nearest cache.
//
//   y = x W^T + b, then finish(tile, row number, row of y) for every row of every tile of y, on the thread that made it
// Each tile of the product (core/products/gemm.h) starts as the bias and is finished when it is complete.
// Shapes: x [rows, in], W [out, in], b [out] or null, y [rows, out].
#pragma once

#include "autograd/grads.h"
#include "core/products/gemm.h"
#include "core/tensor_ops.h"

namespace orrery::kernels {

/// Errors: a weight that is not [out, in] for rows of x; a bias that is not [out]; an x without axes.
static inline void check_linear(std::string_view operation, const Tensor& x, const Tensor& W, const Tensor& b) {
  check(W.rank() == 2, operation, "the weight needs shape [out, in], has ", W.shape());
  check(x.rank() >= 1, operation, "x needs at least one axis");
  check(x.size(-1) == W.size(1), operation, "inner sizes differ (", x.size(-1), " != ", W.size(1), ")");
  check(!b.defined() || b.shape() == Shape{W.size(0)}, operation, "the bias needs shape ", Shape{W.size(0)}, ", has ",
        b.shape());
}

/// The `finish` that does nothing.
struct Nothing {
  template <class T> void operator()(const Tile&, i64, T*) const {}
};

/// Computes y as above. Errors: those of `gemm`.
template <class T, class Finish = Nothing>
static void linear_rows(Mat<const T> x, Mat<const T> W, const T* b, Mat<T> y, const Finish& finish = {}) {
  const auto fill = [=](const Tile& tile) {
    for (i64 row = tile.row; row < tile.row_end; ++row)
      std::copy(b + tile.column, b + tile.column_end, y.data + row * y.stride + tile.column);
  };
  const auto finish_rows = [=, &finish](const Tile& tile) {
    for (i64 row = tile.row; row < tile.row_end; ++row) finish(tile, row, y.data + row * y.stride);
  };
  const TileWork before = b ? TileWork(fill) : TileWork();
  const TileWork after = std::is_same_v<Finish, Nothing> ? TileWork() : TileWork(finish_rows);
  gemm<T>(x, W, y, Trans::b, before, after);
}

}  // namespace orrery::kernels
