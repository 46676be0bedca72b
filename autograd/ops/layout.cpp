// Chapter 4. Moving elements: the gradient of each element goes back to where the element came from.
//
//   reshape, permute     dx is dy moved the other way
//   concat               each part gets its piece of dy
//   slice, split         dy goes to the piece it was cut from; the rest of dx is 0
//   where                dy goes to what was chosen; the rest of dx and of dy is 0
//   gather               dy is added to the elements that were read; the rest of dx is 0
//   scatter              dx = dy, but 0 where x was overwritten; the part's gradient is gathered from dy
#include "autograd/ops/layout.h"

#include "autograd/apply.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Adds dy to the piece of dx(0) that starts at `begin` along `axis`. If nothing has been written to dx(0) yet, sets the
// rest to 0.
void add_piece(Grads& dx, const Tensor& dy, int axis, i64 begin) {
  if (!dx.wanted(0)) return;
  const GradientBuffer into = dx.into(0);
  if (into.is_new) fill(into.buffer, 0.0);
  slice_into(into.buffer, dy, axis, begin, true);
}

struct Reshape {
  static constexpr std::string_view name = "reshape";
  Shape shape;
  Tensor forward(const Tensor& x) { return x.reshape(shape); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy.reshape(dx.shape(0))); }
};

struct Permute {
  static constexpr std::string_view name = "permute";
  std::vector<i64> order;
  Tensor forward(const Tensor& x) { return permute(x, order); }
  void backward(const Tensor& dy, Grads& dx) {
    std::vector<i64> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      back[static_cast<size_t>(dy.shape().axis(order[i], name))] = static_cast<i64>(i);
    }
    dx.add(0, permute(dy, back));
  }
};

struct Concat {
  static constexpr std::string_view name = "concat";
  i64 axis;
  std::vector<i64> sizes{};  // of each part along the axis

  Tensor forward(std::span<const Tensor> parts) {
    const Tensor y = concat(parts, axis);
    const int along = y.shape().axis(axis, name);
    for (const Tensor& part : parts) sizes.push_back(part.size(along));
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const int along = dy.shape().axis(axis, name);
    i64 begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (dx.wanted(i)) dx.add(i, slice(dy, along, begin, begin + sizes[i]));
      begin += sizes[i];
    }
  }
};

struct Slice {
  static constexpr std::string_view name = "slice";
  i64 axis, begin, end;
  Tensor forward(const Tensor& x) { return slice(x, axis, begin, end); }
  void backward(const Tensor& dy, Grads& dx) {
    const int along = dy.shape().axis(axis, name);
    add_piece(dx, dy, along, slice_range(dx.shape(0)[along], begin, end).begin);
  }
};

// N parts along an axis: the first N - 1 of `size` elements and the last with the rest, or all of them equal.
template <size_t N> struct Split {
  static constexpr std::string_view name = "split";
  i64 size, axis;
  bool equal = false;

  std::array<Tensor, N> forward(const Tensor& x) {
    check(x.defined(), name, "the tensor is not defined");
    const int along = x.shape().axis(axis, name);
    constexpr i64 n = static_cast<i64>(N);
    check(!equal || x.size(along) % n == 0, name, "axis ", along, " of ", x.shape(), " does not divide into ", n,
          " parts");
    if (equal) size = x.size(along) / n;
    const i64 before_last = static_cast<i64>(N - 1) * size;
    check(size >= 0 && before_last <= x.size(along), name, "cannot cut ", N - 1, " parts of ", size, " from axis ",
          along, " of size ", x.size(along));
    std::array<Tensor, N> parts;
    for (size_t i = 0; i < N; ++i) {
      const i64 begin = static_cast<i64>(i) * size;
      parts[i] = slice(x, along, begin, i + 1 == N ? x.size(along) : begin + size);
    }
    return parts;
  }
  void backward(const std::array<Tensor, N>& dy, Grads& dx) {
    for (size_t i = 0; i < N; ++i) {
      if (dy[i].defined()) add_piece(dx, dy[i], dy[i].shape().axis(axis, name), static_cast<i64>(i) * size);
    }
  }
};

struct BroadcastTo {
  static constexpr std::string_view name = "broadcast_to";
  Shape shape;
  Tensor forward(const Tensor& x) { return broadcast_to(x, shape); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy); }
};

struct Where {
  static constexpr std::string_view name = "where";
  Saved condition;
  Tensor forward(const Tensor& x, const Tensor& y) { return where(condition, x, y); }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor zero = zeros({}, dy.dtype());
    if (dx.wanted(0)) dx.add(0, where(condition, dy, zero));
    if (dx.wanted(1)) dx.add(1, where(condition, zero, dy));
  }
};

struct Gather {
  static constexpr std::string_view name = "gather";
  i64 axis;
  Saved ids;
  Tensor forward(const Tensor& x) { return gather(x, axis, ids); }
  void backward(const Tensor& dy, Grads& dx) {
    if (!dx.wanted(0)) return;
    const GradientBuffer into = dx.into(0);
    if (into.is_new) fill(into.buffer, 0.0);
    scatter_into(into.buffer, axis, ids, dy, true);
  }
};

struct Scatter {
  static constexpr std::string_view name = "scatter";
  i64 axis;
  Saved ids;
  bool accumulate;
  Tensor forward(const Tensor& x, const Tensor& part) {
    check_defined(x, name);
    Tensor y = x.clone();
    scatter_into(y, axis, ids, part, accumulate);
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(1)) dx.add(1, gather(dy, axis, ids));
    if (!dx.wanted(0) || accumulate) return dx.add(0, dy);
    Tensor kept = dy.clone();
    scatter_into(kept, axis, ids, zeros(ids.get().shape(), dy.dtype()), false);
    dx.add(0, std::move(kept));
  }
};

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) { return apply(Reshape{shape}, x); }

Variable permute(const Variable& x, std::span<const i64> order) {
  return apply(Permute{std::vector<i64>(order.begin(), order.end())}, x);
}

Variable concat(std::span<const Variable> parts, i64 axis) { return apply(Concat{axis}, parts); }

Variable slice(const Variable& x, i64 axis, i64 begin, i64 end) { return apply(Slice{axis, begin, end}, x); }

std::array<Variable, 2> split(const Variable& x, i64 size, i64 axis) {
  return apply(Split<2>{.size = size, .axis = axis}, x);
}

std::array<Variable, 3> split3(const Variable& x, i64 axis) {
  return apply(Split<3>{.size = 0, .axis = axis, .equal = true}, x);
}

Variable broadcast_to(const Variable& x, const Shape& shape) { return apply(BroadcastTo{shape}, x); }

Variable select(const Variable& x, i64 axis, i64 i) {
  const int along = x.shape().axis(axis, "select");
  const i64 n = x.size(along), at = i < 0 ? i + n : i;
  check(at >= 0 && at < n, "select", "there is no entry ", i, " along axis ", along, " of ", x.shape());
  return reshape(slice(x, along, at, at + 1), reduced_shape(x.shape(), {along}, false, "select"));
}

Variable where(const Tensor& condition, const Variable& x, const Variable& y) {
  return apply(Where{Saved(condition)}, x, y);
}

Variable gather(const Variable& x, i64 axis, const Tensor& ids) { return apply(Gather{axis, Saved(ids)}, x); }

Variable scatter(const Variable& x, i64 axis, const Tensor& ids, const Variable& part, bool accumulate) {
  return apply(Scatter{axis, Saved(ids), accumulate}, x, part);
}

}  // namespace orrery
