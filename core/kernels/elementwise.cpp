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

}  // namespace orrery::kernels
