// Chapter 1. Moving elements: joining, slicing, reversing and permuting axes.
//
// Most functions treat a tensor as [outer, n, inner]: all axes before the chosen one as one axis, the chosen axis
// itself, and all axes after it as one axis, whose elements are adjacent in memory.

#include "core/kernels/elementwise.h"
#include "core/products/transpose.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

// The numbers of elements before an axis, along it, and after it.
struct Extents {
  i64 outer, n, inner;
};

Extents around(const Shape& shape, int axis) {
  return {.outer = shape.count(0, axis), .n = shape[axis], .inner = shape.count(axis + 1, shape.rank())};
}

// Copies or adds rows of `run` adjacent elements, which are `from_step` and `to_step` elements apart.
template <class T>
void copy_or_add_rows(i64 rows, i64 run, const T* from, i64 from_step, T* to, i64 to_step, bool accumulate) {
  constexpr i64 narrow = 16;   // shorter rows go column by column: each element is moved faster than a call is made
  constexpr i64 group = 1024;  // few: with wide steps, each row is in cache lines of its own
  const auto copy_or_add = [=](i64 begin, i64 end) {
    const T* in = from + begin * from_step;
    T* out = to + begin * to_step;
    if (run < narrow && accumulate) {
      for (i64 i = 0; i < run; ++i)
        for (i64 row = 0; row < end - begin; ++row) out[row * to_step + i] += in[row * from_step + i];
    } else if (run < narrow) {
      for (i64 i = 0; i < run; ++i)
        for (i64 row = 0; row < end - begin; ++row) out[row * to_step + i] = in[row * from_step + i];
    } else {
      for (i64 row = begin; row < end; ++row, in += from_step, out += to_step) {
        if (accumulate)
          add_to(run, in, out);
        else
          std::copy_n(in, run, out);
      }
    }
  };
  for_row_groups(rows, run, copy_or_add, group);
}

}  // namespace

SliceRange slice_range(i64 size, i64 begin, i64 end) {
  const auto from_start = [size](i64 i) { return std::clamp<i64>(i < 0 ? i + size : i, 0, size); };
  const i64 first = from_start(begin);
  return {first, std::max(first, from_start(end))};
}

Tensor concat(std::span<const Tensor> parts, i64 axis) {
  check(!parts.empty(), "concat", "needs at least one part");
  for (const Tensor& part : parts) check_defined(part, "concat");
  const int along = parts[0].shape().axis(axis, "concat");
  i64 n = 0;
  for (const Tensor& part : parts) {
    check(part.rank() == parts[0].rank() && part.shape().with(along, 0) == parts[0].shape().with(along, 0), "concat",
          "shapes differ in another axis than ", along, " (", parts[0].shape(), " and ", part.shape(), ")");
    check(part.dtype() == parts[0].dtype(), "concat", "dtypes differ (", parts[0].dtype(), " and ", part.dtype(), ")");
    n += part.size(along);
  }
  Tensor y = Tensor::empty(parts[0].shape().with(along, n), parts[0].dtype());
  i64 begin = 0;
  for (const Tensor& part : parts) {
    slice_into(y, part, along, begin, false);
    begin += part.size(along);
  }
  return y;
}

Tensor slice(const Tensor& x, i64 axis, i64 begin, i64 end) {
  check_defined(x, "slice");
  const int along = x.shape().axis(axis, "slice");
  const SliceRange range = slice_range(x.size(along), begin, end);
  if (along == 0) return x.rows(range.begin, range.end);
  Tensor y = Tensor::empty(x.shape().with(along, range.end - range.begin), x.dtype());
  const Extents from = around(x.shape(), along);
  dispatch(x.dtype(), [&, run = (range.end - range.begin) * from.inner](auto t) {
    using T = decltype(t);
    copy_or_add_rows(from.outer, run, x.data<T>() + range.begin * from.inner, from.n * from.inner, y.write<T>(), run,
                     false);
  });
  return y;
}

void slice_into(Tensor& x, const Tensor& part, i64 axis, i64 begin, bool accumulate) {
  check_defined(x, "slice_into");
  check_defined(part, "slice_into");
  const int along = x.shape().axis(axis, "slice_into");
  const Extents to = around(x.shape(), along);
  // Not begin + size <= n: that sum may overflow.
  check(part.shape().with(along, 0) == x.shape().with(along, 0) && begin >= 0 && begin <= to.n - part.size(along),
        "slice_into", "a part of shape ", part.shape(), " does not fit into ", x.shape(), " at ", begin);
  check(!x.overlaps(part), "slice_into", "the part must not share memory with the tensor");
  dispatch(x.dtype(), [&, run = part.size(along) * to.inner](auto t) {
    using T = decltype(t);
    copy_or_add_rows(to.outer, run, part.data<T>(), run, x.write<T>() + begin * to.inner, to.n * to.inner, accumulate);
  });
}

Tensor flip(const Tensor& x, i64 axis) {
  check_defined(x, "flip");
  const int along = x.shape().axis(axis, "flip");
  const Extents extents = around(x.shape(), along);
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = y.write<T>();
    for_rows(extents.outer * extents.n, extents.inner, [=](i64 row) {
      const i64 o = row / extents.n, i = row % extents.n;
      std::copy_n(in + (o * extents.n + extents.n - 1 - i) * extents.inner, extents.inner, out + row * extents.inner);
    });
  });
  return y;
}

Tensor permute(const Tensor& x, std::span<const i64> order) {
  check_defined(x, "permute");
  const int rank = x.rank();
  check(static_cast<int>(order.size()) == rank, "permute", "names ", order.size(), " axes of shape ", x.shape());
  std::array<i64, Shape::max_rank> stride{}, step{};
  i64 below = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    stride[static_cast<size_t>(axis)] = below;
    below *= x.size(axis);
  }
  Shape shape;
  std::array<bool, Shape::max_rank> used{};
  for (int i = 0; i < rank; ++i) {
    const size_t from = static_cast<size_t>(x.shape().axis(order[static_cast<size_t>(i)], "permute"));
    check(!used[from], "permute", "axis ", from, " is named twice");
    used[from] = true;
    shape = shape.plus(x.size(static_cast<int>(from)));
    step[static_cast<size_t>(i)] = stride[from];
  }
  Tensor y = Tensor::empty(shape, x.dtype());
  if (y.count() == 0) return y;
  // One row of the result at a time: where it starts in x, and the step between its elements there.
  const i64 columns = rank == 0 ? 1 : shape[-1], column_step = rank == 0 ? 1 : step[static_cast<size_t>(rank - 1)];
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = y.write<T>();
    if (rank == 2 && column_step > 1) return transpose(Mat<const T>(in, x.size(0), x.size(1)), out);
    for_rows(y.count() / columns, columns, [=](i64 row) {
      i64 rest = row, from = 0;
      for (int axis = rank - 2; axis >= 0; --axis) {
        from += rest % shape[axis] * step[static_cast<size_t>(axis)];
        rest /= shape[axis];
      }
      for (i64 i = 0; i < columns; ++i) out[row * columns + i] = in[from + i * column_step];
    });
  });
  return y;
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  check_defined(x, "broadcast_to");
  check(broadcast(x.shape(), shape, "broadcast_to") == shape, "broadcast_to", "cannot repeat ", x.shape(), " to ",
        shape);
  Tensor y = Tensor::empty(shape, x.dtype());
  const BroadcastLoop loop(shape, x.shape(), x.shape());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    broadcast_map<T>(loop, y.count(), in, in, y.write<T>(), [](T value, T) { return value; });
  });
  return y;
}

}  // namespace orrery
