// Chapter 8. Broadcasting as a loop: which axes can be joined, and where an element is.
#include "core/kernels/elementwise.h"

namespace orrery::kernels {

BroadcastLoop::BroadcastLoop(const Shape& result, const Shape& shape_a, const Shape& shape_b) {
  // From the last axis to the first. `stride_*` is the number of elements that one step along the axis skips in an
  // operand.
  std::array<i64, max_rank> sizes{}, steps_a{}, steps_b{};
  int joined = 0;
  i64 stride_a = 1, stride_b = 1;
  for (int axis = 1; axis <= result.rank(); ++axis) {
    const i64 n = result[-axis];
    const i64 n_a = axis <= shape_a.rank() ? shape_a[-axis] : 1, n_b = axis <= shape_b.rank() ? shape_b[-axis] : 1;
    if (n == 1) continue;
    const i64 step_a = n_a == 1 ? 0 : stride_a, step_b = n_b == 1 ? 0 : stride_b;
    const size_t last = static_cast<size_t>(joined - 1);
    if (joined > 0 && step_a == steps_a[last] * sizes[last] && step_b == steps_b[last] * sizes[last]) {
      sizes[last] *= n;
    } else {
      const size_t next = static_cast<size_t>(joined++);
      sizes[next] = n;
      steps_a[next] = step_a;
      steps_b[next] = step_b;
    }
    stride_a *= n_a;
    stride_b *= n_b;
  }
  if (joined == 0) {
    sizes[0] = 1;
    joined = 1;
  }
  rank = joined;
  for (int i = 0; i < rank; ++i) {
    const size_t to = static_cast<size_t>(i), from = static_cast<size_t>(rank - 1 - i);
    size[to] = sizes[from];
    a[to] = steps_a[from];
    b[to] = steps_b[from];
  }
}

BroadcastLoop::Position BroadcastLoop::at(i64 i) const {
  Position position{0, 0, 0};
  for (int axis = rank - 1; axis >= 0; --axis) {
    const size_t k = static_cast<size_t>(axis);
    const i64 index = i % size[k];
    if (axis == rank - 1) position.inner = index;
    position.a += index * a[k];
    position.b += index * b[k];
    i /= size[k];
  }
  return position;
}

namespace {

// Writes `rows` rows of `run` numbers each: one number repeated (step 0), or adjacent ones. Up to 15 more may be
// written behind: the next rows overwrite them, or they are behind the numbers that are used.
template <class T> void repeat_rows(i64 rows, i64 run, i64 step, const T* from, i64 from_step, T* to) {
  constexpr i64 few = 4, vector = 16;
  for (i64 row = 0; row < rows; ++row, from += from_step, to += run) {
    if (step != 0) {
      for (i64 i = 0; i < run; ++i) to[i] = from[i];
    } else if (run <= few) {
      std::fill_n(to, few, *from);
    } else {
      for (i64 i = 0; i < run; i += vector) std::fill_n(to + i, vector, *from);
    }
  }
}

}  // namespace

template <class T>
const T* BroadcastLoop::repeated(const std::array<i64, max_rank>& steps, i64 begin, i64 count, const T* operand,
                                 std::array<T, buffered + narrow>& buffer) const {
  std::array<i64, max_rank> index{};
  bool is_whole = true;  // nothing is repeated
  i64 row = 0, below = 1, rest = begin;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const size_t k = static_cast<size_t>(axis);
    is_whole = is_whole && steps[k] == below;
    below *= size[k];
    index[k] = rest % size[k];
    rest /= size[k];
    if (axis < rank - 1) row += index[k] * steps[k];
  }
  if (is_whole) return operand + begin;
  const size_t last = static_cast<size_t>(rank - 1), above = last - 1;
  const i64 inner = size[last];
  for (i64 done = 0, first = index[last]; done < count; first = 0) {
    const i64 run = std::min(inner - first, count - done);
    const i64 rows = run < inner ? 1 : std::min((count - done) / inner, size[above] - index[above]);
    repeat_rows(rows, run, steps[last], operand + row + first * steps[last], steps[above], buffer.data() + done);
    done += rows * run;
    index[above] += rows;
    row += rows * steps[above];
    for (size_t axis = above; axis > 0 && index[axis] == size[axis]; --axis) {
      index[axis] = 0;
      ++index[axis - 1];
      row += steps[axis - 1] - steps[axis] * size[axis];
    }
  }
  return buffer.data();
}
template const float* BroadcastLoop::repeated(const std::array<i64, max_rank>&, i64, i64, const float*,
                                              std::array<float, buffered + narrow>&) const;
template const i32* BroadcastLoop::repeated(const std::array<i64, max_rank>&, i64, i64, const i32*,
                                            std::array<i32, buffered + narrow>&) const;
template const double* BroadcastLoop::repeated(const std::array<i64, max_rank>&, i64, i64, const double*,
                                               std::array<double, buffered + narrow>&) const;

}  // namespace orrery::kernels
