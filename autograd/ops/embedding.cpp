// Chapter 5. Embedding: rows of a table, looked up by token id.
//
// y[i] = weight[ids[i]], so row r of the table receives the gradients of all places that use it:
//   dweight[r] = sum over i with ids[i] = r of dy[i]
// Backward first sorts the places by id. Each row then belongs to one thread, which adds its places in order. So no two
// threads write to the same row, and the order of a sum does not depend on the number of threads.
// The fused operation embedding_sum (chapter 8) is dropout(factor embedding + positions) in one pass. What this saves:
// apps/measure/bench/README.md.
#include "autograd/ops/embedding.h"

#include <limits>

#include "autograd/apply.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/row_dropout.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

// Places sorted by id: those of row r are order[first[r]] ... order[first[r + 1] - 1], in ascending order.
struct Places {
  Tensor first, order;  // i32; tensors, since their memory is kept from step to step
  Places(const i32* ids, i64 n, i64 rows)
      : first(zeros({rows + 2}, Dtype::i32)), order(Tensor::empty({n}, Dtype::i32)) {
    i32 *count = first.write<i32>(), *place = order.write<i32>();
    for (i64 i = 0; i < n; ++i) ++count[ids[i] + 2];
    for (i64 r = 0; r < rows; ++r) count[r + 2] += count[r + 1];
    // count[r + 1] is now the first place of row r. It moves on by one for each place of the row, to that of row r + 1.
    for (i64 i = 0; i < n; ++i) place[count[ids[i] + 1]++] = static_cast<i32>(i);
  }
};

// The ids of a lookup, and the gradient of the table.
struct Lookup {
  Saved ids;

  // Checks table and ids; returns the number of lookups.
  i64 check_arguments(std::string_view name, const Tensor& weight) const {
    check(weight.rank() == 2, name, "the table needs shape [rows, columns], has ", weight.shape());
    check_ids(ids, weight.size(0), name);
    const i64 n = ids.get().count();
    check(n <= std::numeric_limits<i32>::max(), name, "takes at most 2^31 - 1 ids at once, got ", n);
    return n;
  }

  // dweight[r] += factor * the sum of dy over the places where row r was used.
  void backward(const Tensor& dy, double factor, Grads& dx) const {
    if (!dx.wanted(0)) return;
    const GradientBuffer into = dx.into(0);
    const i64 rows = into.buffer.size(0), columns = into.buffer.size(1);
    const Places places(ids.get().data<i32>(), ids.get().count(), rows);
    const i32 *first = places.first.data<i32>(), *order = places.order.data<i32>();
    dispatch_floating(dy.dtype(), "embedding", [&](auto t) {
      using T = decltype(t);
      const T* d = dy.data<T>();
      T* out = into.buffer.write<T>();
      for_rows(rows, columns, [&, is_new = into.is_new, scale = static_cast<T>(factor)](i64 r) {
        T* row = out + r * columns;
        if (is_new) std::fill_n(row, columns, T{0});
        for (i32 i = first[r]; i < first[r + 1]; ++i) {
          const T* from = d + order[i] * columns;
#pragma omp simd
          for (i64 k = 0; k < columns; ++k) row[k] += scale * from[k];
        }
      });
    });
  }
};

struct Embedding {
  static constexpr std::string_view name = "embedding";
  Lookup lookup;

  Tensor forward(const Tensor& weight) {
    const i64 n = lookup.check_arguments(name, weight), columns = weight.size(1);
    Tensor y = Tensor::empty(lookup.ids.get().shape().plus(columns), weight.dtype());
    dispatch_floating(weight.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const i32* id = lookup.ids.get().data<i32>();
      const T* table = weight.data<T>();
      T* out = y.write<T>();
      for_rows(n, columns, [=](i64 i) { std::copy_n(table + id[i] * columns, columns, out + i * columns); });
    });
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) { lookup.backward(dy, 1.0, dx); }
};

// z = scale x + y
template <class T> void scaled_sum(i64 n, T scale, const T* x, const T* y, T* z) {
#pragma omp simd
  for (i64 k = 0; k < n; ++k) z[k] = scale * x[k] + y[k];
}

// y = m (factor weight[ids] + positions), where m are dropout's factors (paper, sections 3.4, 3.5 and 5.4).
struct EmbeddingSum {
  static constexpr std::string_view name = "embedding_sum";
  double factor;
  RowDropout dropout;
  Lookup lookup;

  Tensor forward(const Tensor& weight, const Tensor& positions) {
    const Tensor& ids = lookup.ids;
    const i64 n = ids.count(), length = ids.size(1), columns = weight.size(1);
    Tensor y = Tensor::empty(ids.shape().plus(columns), weight.dtype());
    dispatch_floating(weight.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const i32* id = ids.data<i32>();
      const T *table = weight.data<T>(), *position = positions.data<T>();
      T* out = y.write<T>();
      for_row_groups(n, columns, [=, this, scale = static_cast<T>(factor)](i64 begin, i64 end) {
        for (i64 i = begin; i < end; ++i)
          scaled_sum(columns, scale, table + id[i] * columns, position + i % length * columns, out + i * columns);
        dropout.rows(begin, end, columns, out + begin * columns, out + begin * columns);
      });
    });
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor d = dropout.p == 0 ? dy : dropout.applied(dy, dx.reuse(dy));
    lookup.backward(d, factor, dx);
    if (!dx.wanted(1)) return;
    const Tensor by_position = sum(d, {0});
    const Shape all = dx.shape(1);
    if (by_position.shape() == all) return dx.add(1, by_position);
    Tensor padded = zeros(all, dy.dtype());
    slice_into(padded, by_position, 0, 0, false);
    dx.add(1, padded);
  }

  void check_arguments(const Tensor& weight, const Tensor& positions) const {
    lookup.check_arguments(name, weight);
    const Tensor& ids = lookup.ids;
    check(ids.rank() == 2, name, "ids need shape [B, T], have ", ids.shape());
    const i64 length = ids.size(1), columns = weight.size(1);
    check(positions.rank() == 2 && positions.size(0) >= length && positions.size(1) == columns, name,
          "positions need shape [", length, " or more, ", columns, "], have ", positions.shape());
    dropout.check_usable(name);
  }
};

}  // namespace

Variable embedding(const Variable& weight, const Tensor& ids) { return apply(Embedding{{Saved(ids)}}, weight); }

Variable index_rows(const Variable& x, const Tensor& ids) {
  check(x.shape().rank() >= 1 && ids.defined(), "index_rows", "needs a tensor with axes, and ids");
  Shape shape = ids.shape();
  for (int axis = 1; axis < x.shape().rank(); ++axis) shape = shape.plus(x.size(axis));
  return reshape(embedding(reshape(x, {x.size(0), x.shape().count(1, x.shape().rank())}), ids), shape);
}

Variable embedding_sum(const Variable& weight, const Tensor& ids, double factor, const Variable& positions, double p,
                       const Draw& draw) {
  EmbeddingSum operation{factor, {p, draw}, {Saved(ids)}};
  tape::explained(operation.name, std::array{&weight, &positions}, [&] {
    tape::check_inputs(operation.name, std::array{&weight, &positions});
    operation.check_arguments(weight.value(), positions.value());
  });
  return apply(std::move(operation), weight, positions);
}

}  // namespace orrery
