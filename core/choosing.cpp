// Chapter 1. Comparing, choosing and ordering elements. Which element goes where depends on ids, not on the threads.
#include "core/choosing.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

// Orders the indices of a row x[0..n) that are in `order`, such that the first k are in place.
template <class T> void order_row(const T* x, i64 n, i64 k, bool descending, i32* order) {
  std::iota(order, order + n, 0);
  const auto before = [](T a, T b) { return a < b || (a == a && b != b); };  // NaN is behind all numbers
  const auto first = [=](i32 i, i32 j) {
    const T a = x[descending ? j : i], b = x[descending ? i : j];
    return before(a, b) || (!before(b, a) && i < j);
  };
  k == n ? std::sort(order, order + n, first) : std::partial_sort(order, order + k, order + n, first);
}

Tensor ordered(const Tensor& x, i64 k, bool descending, std::string_view operation) {
  check(x.defined() && x.rank() >= 1, operation, "needs at least one axis");
  const i64 n = x.size(-1);
  check(k >= 0 && k <= n, operation, "k must lie in [0, ", n, "], got ", k);
  Tensor order = Tensor::empty(x.shape(), Dtype::i32);
  i32* to = order.write<i32>();
  dispatch_floating(x.dtype(), operation, [&](auto t) {
    const auto* from = x.data<decltype(t)>();
    for_rows(x.shape().without_last().count(), n,
             [=](i64 row) { order_row(from + row * n, n, k, descending, to + row * n); });
  });
  return order;
}

Tensor repeated_to(const Tensor& x, const Shape& shape) { return x.shape() == shape ? x : broadcast_to(x, shape); }

// The numbers before an axis, along it and after it, for ids that stand for elements along it.
struct Places {
  i64 outer, n, inner;
  Places(const Tensor& x, int axis, const Tensor& ids, std::string_view operation)
      : outer(x.shape().count(0, axis)), n(x.size(axis)), inner(x.shape().count(axis + 1, x.rank())) {
    check_ids(ids, n, operation);
    check(ids.rank() == x.rank() && ids.shape().with(axis, n) == x.shape(), operation, "ids ", ids.shape(),
          " do not fit a tensor ", x.shape(), " along axis ", axis);
  }
};

}  // namespace

Tensor compare(const Tensor& a, const Tensor& b, Relation how) {
  check(a.defined() && b.defined(), "compare", "needs two tensors");
  check(a.dtype() == b.dtype(), "compare", "dtypes differ (", a.dtype(), " and ", b.dtype(), ")");
  const Shape shape = broadcast(a.shape(), b.shape(), "compare");
  const Tensor left = repeated_to(a, shape), right = repeated_to(b, shape);
  const auto with = [&](auto holds) {
    Tensor y = Tensor::empty(shape, Dtype::i32);
    dispatch(a.dtype(), [&](auto t) {
      const auto *p = left.data<decltype(t)>(), *q = right.data<decltype(t)>();
      i32* out = y.write<i32>();
      parallel_for(y.count(), elementwise_grain, [=](i64 begin, i64 end) {
        for (i64 i = begin; i < end; ++i) out[i] = holds(p[i], q[i]);
      });
    });
    return y;
  };
  switch (how) {
    case Relation::less: return with(std::less<>());
    case Relation::less_equal: return with(std::less_equal<>());
    case Relation::greater: return with(std::greater<>());
    case Relation::greater_equal: return with(std::greater_equal<>());
    case Relation::equal: return with(std::equal_to<>());
    case Relation::not_equal: break;
  }
  return with(std::not_equal_to<>());
}

Tensor compare(const Tensor& a, double b, Relation how) {
  check_defined(a, "compare");
  const Tensor x = is_floating(a.dtype()) ? a : a.to(f64);
  return compare(x, full({}, b, x.dtype()), how);
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  check(condition.defined() && condition.dtype() == Dtype::i32, "where", "the condition must be i32, such as x > 0");
  check(x.defined() && y.defined(), "where", "needs two tensors to choose from");
  check(x.dtype() == y.dtype(), "where", "dtypes differ (", x.dtype(), " and ", y.dtype(), ")");
  const Shape shape = broadcast(broadcast(condition.shape(), x.shape(), "where"), y.shape(), "where");
  const Tensor c = repeated_to(condition, shape), a = repeated_to(x, shape), b = repeated_to(y, shape);
  Tensor z = Tensor::empty(shape, x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const i32* is = c.data<i32>();
    const T *yes = a.data<T>(), *no = b.data<T>();
    T* out = z.write<T>();
    parallel_for(z.count(), elementwise_grain, [=](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) out[i] = is[i] != 0 ? yes[i] : no[i];
    });
  });
  return z;
}

void check_ids(const Tensor& ids, i64 limit, std::string_view operation) {
  check(ids.defined() && ids.dtype() == Dtype::i32, operation, "ids must be i32");
  const i32* id = ids.data<i32>();
  for (i64 i = 0; i < ids.count(); ++i)
    check(id[i] >= 0 && id[i] < limit, operation, "id ", id[i], " at position ", i, " is outside [0, ", limit, ")");
}

Tensor one_hot(const Tensor& ids, i64 classes, Dtype dtype) {
  check_ids(ids, classes, "one_hot");
  Tensor y = zeros(ids.shape().plus(classes), dtype);
  dispatch(dtype, [&](auto t) {
    auto* out = y.write<decltype(t)>();
    for (i64 i = 0; i < ids.count(); ++i) out[i * classes + ids.data<i32>()[i]] = 1;
  });
  return y;
}

Tensor index_rows(const Tensor& x, const Tensor& ids) {
  check(x.defined() && x.rank() >= 1, "index_rows", "needs at least one axis");
  check_ids(ids, x.size(0), "index_rows");
  Shape shape = ids.shape();
  for (int axis = 1; axis < x.rank(); ++axis) shape = shape.plus(x.size(axis));
  Tensor y = Tensor::empty(shape, x.dtype());
  dispatch(x.dtype(), [&, n = x.shape().count(1, x.rank())](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = y.write<T>();
    for_rows(ids.count(), n, [=, id = ids.data<i32>()](i64 i) { std::copy_n(in + id[i] * n, n, out + i * n); });
  });
  return y;
}

Tensor gather(const Tensor& x, i64 axis, const Tensor& ids) {
  check_defined(x, "gather");
  const int along = x.shape().axis(axis, "gather");
  const Places at(x, along, ids, "gather");
  Tensor y = Tensor::empty(ids.shape(), x.dtype());
  dispatch(x.dtype(), [&, k = ids.size(along)](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = y.write<T>();
    for_rows(at.outer * k, at.inner, [=, n = at.n, inner = at.inner, id = ids.data<i32>()](i64 row) {
      const T* from = in + row / k * n * inner;
      for (i64 i = 0; i < inner; ++i) out[row * inner + i] = from[id[row * inner + i] * inner + i];
    });
  });
  return y;
}

void scatter_into(Tensor& x, i64 axis, const Tensor& ids, const Tensor& part, bool accumulate) {
  check(x.defined() && part.defined(), "scatter", "needs two tensors");
  const int along = x.shape().axis(axis, "scatter");
  const Places at(x, along, ids, "scatter");
  check(part.shape() == ids.shape() && part.dtype() == x.dtype(), "scatter", "ids ", ids.shape(), " and ", x.dtype(),
        " numbers need a part like them, got ", part.dtype(), ' ', part.shape());
  check(!x.overlaps(part) && !x.overlaps(ids), "scatter", "neither ids nor part may share memory with the tensor");
  const i64 k = ids.size(along);
  const auto place = [=, n = at.n, inner = at.inner, id = ids.data<i32>()](i64 i) {
    return (i / (k * inner) * n + id[i]) * inner + i % inner;
  };
  std::vector<bool> written(accumulate ? 0 : static_cast<size_t>(x.count()));
  for (i64 i = 0; !accumulate && i < ids.count(); ++i) {
    check(!written[static_cast<size_t>(place(i))], "scatter", "id ", ids.data<i32>()[i], " at position ", i,
          " writes to an element that has been written already; accumulate adds");
    written[static_cast<size_t>(place(i))] = true;
  }
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* in = part.data<T>();
    T* out = x.write<T>();
    for_rows(at.outer, k * at.inner, [=, count = k * at.inner](i64 o) {
      for (i64 i = o * count; i < (o + 1) * count; ++i) {
        T& to = out[place(i)];
        to = accumulate ? to + in[i] : in[i];
      }
    });
  });
}

Tensor argsort(const Tensor& x, bool descending) {
  return ordered(x, x.defined() && x.rank() > 0 ? x.size(-1) : 0, descending, "argsort");
}

TopK topk(const Tensor& x, i64 k) {
  const Tensor ids = slice(ordered(x, k, true, "topk"), -1, 0, k);
  return {.values = gather(x, -1, ids), .ids = ids};
}

double accuracy(const Tensor& logits, const Tensor& labels, i32 ignore) {
  const Tensor said = argmax(logits);
  check(labels.defined() && labels.dtype() == Dtype::i32 && labels.shape() == said.shape(), "accuracy", "logits ",
        logits.shape(), " need i32 labels of shape ", said.shape());
  const i32 *label = labels.data<i32>(), *answer = said.data<i32>();
  i64 right = 0, counted = 0;
  for (i64 i = 0; i < labels.count(); ++i) {
    counted += label[i] != ignore;
    right += label[i] != ignore && label[i] == answer[i];
  }
  return counted > 0 ? static_cast<double>(right) / static_cast<double>(counted) : 0;
}

}  // namespace orrery
