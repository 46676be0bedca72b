// Chapter 8. Dropout as part of another operation, applied to rows while they are in the nearest cache.
//
// The factors m are those of ops/dropout.cpp for a matrix of the same shape, so fused and composed forms drop the same
// elements.
#pragma once

#include <cassert>

#include "core/kernels/elementwise.h"
#include "core/random.h"

namespace orrery::kernels {
namespace {  // a copy for each file that uses it: core/kernels/README.md

/// Dropout with probability p on the rows of a matrix.
struct RowDropout {
  double p = 0;
  Draw draw{};

  /// Errors of `operation`: p outside [0, 1]; a draw whose counters overlap another's.
  void check_usable(std::string_view operation) const {
    check(p >= 0 && p <= 1, operation, "needs a probability in [0, 1], got ", p);
    check(draw.micro < Draw::most_micro, operation, "needs a micro-batch below ", Draw::most_micro, ", got ",
          draw.micro);
  }

  /// y = x m for rows [begin, end) of a matrix with n columns; x and y point to row `begin`, y may be x.
  template <class T> void rows(i64 begin, i64 end, i64 n, const T* x, T* y) const {
    const i64 blocks = blocks_of_row(n);
    if (n % decisions_per_block == 0) return segment(begin * blocks, (end - begin) * n, x, y);  // no gaps between rows
    for (i64 row = begin; row < end; ++row, x += n, y += n) segment(row * blocks, n, x, y);
  }
  /// The same in place for columns [begin, end) of row number `row` only. `begin` must be a multiple of 8; y points to
  /// the row.
  template <class T> void columns(i64 row, i64 n, i64 begin, i64 end, T* y) const {
    assert(begin % decisions_per_block == 0);  // not an exception: this often runs inside a parallel loop
    const i64 block = row * blocks_of_row(n) + begin / decisions_per_block;
    if (p > 0) drop(draw, p, block, end - begin, y + begin, y + begin);
  }

  /// y = x m for a whole tensor, written to `result`, which has the shape of x and may be x. Returns `result`.
  Tensor applied(const Tensor& x, Tensor result) const {
    dispatch_floating(x.dtype(), "dropout", [&](auto t) {
      using T = decltype(t);
      const i64 n = x.rank() == 0 ? 1 : x.size(-1);
      const T* from = x.data<T>();
      T* to = result.write<T>();
      parallel_for(n == 0 ? 0 : x.count() / n, row_grain(n),
                   [=, this](i64 begin, i64 end) { rows(begin, end, n, from + begin * n, to + begin * n); });
    });
    return result;
  }

 private:
  // n numbers whose decisions follow one another, starting with block `block`.
  template <class T> void segment(i64 block, i64 n, const T* x, T* y) const {
    if (p == 0) {
      if (x != y) std::copy_n(x, n, y);
      return;
    }
    in_segments(n, x, y, [=, this](i64 first, i64 last) {
      drop(draw, p, block + first / decisions_per_block, last - first, x + first, y + first);
    });
  }
};

}  // namespace
}  // namespace orrery::kernels
