// Chapter 5. Embedding: rows of a table, looked up by number.
//
// y[i] = weight[ids[i]], so that row r of the table gets the gradients of all places where it was used:
//   dweight[r] = sum over i with ids[i] = r of dy[i]
// Places are first sorted by id; each row then belongs to one thread, which adds its places in order. No two threads
// ever write to one row, and the order of the sum does not depend on how many there are.
// Read next: nn/embedding.h
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Places sorted by id: those of row r are order[first[r]] ... order[first[r + 1] - 1], in their own order.
struct Places {
  std::vector<i64> first, order;
  Places(const i32* ids, i64 n, i64 rows) : first(static_cast<size_t>(rows) + 1), order(static_cast<size_t>(n)) {
    for (i64 i = 0; i < n; ++i) ++first[static_cast<size_t>(ids[i]) + 1];
    for (size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    std::vector<i64> next(first.begin(), first.end() - 1);
    for (i64 i = 0; i < n; ++i) order[static_cast<size_t>(next[static_cast<size_t>(ids[i])]++)] = i;
  }
};

struct Embedding {
  static constexpr std::string_view name = "embedding";
  Saved ids;

  Tensor forward(const Tensor& weight) {
    check(ids.defined() && ids.get().dtype() == Dtype::i32, name, "ids must be i32");
    check(weight.rank() == 2, name, "the table needs shape [rows, columns], has ", weight.shape());
    const i64 rows = weight.size(0), columns = weight.size(1), n = ids.get().count();
    const i32* id = ids.get().data<i32>();
    for (i64 i = 0; i < n; ++i) {
      check(id[i] >= 0 && id[i] < rows, name, "id ", id[i], " at position ", i, " is outside [0, ", rows, ")");
    }
    Tensor y = Tensor::empty(ids.get().shape().plus(columns), weight.dtype());
    dispatch_floating(weight.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* table = weight.data<T>();
      T* out = y.write<T>();
      for_rows(n, columns, [=](i64 i) { std::copy_n(table + id[i] * columns, columns, out + i * columns); });
    });
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    if (!dx.wanted(0)) return;
    const Into into = dx.into(0);
    const i64 rows = into.buffer.size(0), columns = into.buffer.size(1);
    const Places places(ids.get().data<i32>(), ids.get().count(), rows);
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* d = dy.data<T>();
      T* out = into.buffer.write<T>();
      for_rows(rows, columns, [&, first = into.first](i64 r) {
        T* row = out + r * columns;
        if (first) std::fill_n(row, columns, T{0});
        const size_t end = static_cast<size_t>(places.first[static_cast<size_t>(r) + 1]);
        for (size_t i = static_cast<size_t>(places.first[static_cast<size_t>(r)]); i < end; ++i) {
          const T* from = d + places.order[i] * columns;
#pragma omp simd
          for (i64 k = 0; k < columns; ++k) row[k] += from[k];
        }
      });
    });
  }
};

}  // namespace

Variable embedding(const Variable& weight, const Tensor& ids) { return apply(Embedding{Saved(ids)}, weight); }

}  // namespace orrery
