// Chapter 6. KeyValueCache: rows copied in, and attention read out of it.
//
// One task is one head of one sequence. Its scores are dot products of a query with the keys where they are stored, its
// output is a weighted sum of the values there. Nothing is copied, transposed or padded, since reading memory is what
// takes the time.
#include "nn/attention/key_value_cache.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/softmax_rows.h"
#include "core/kernels/elementwise.h"
#include "core/products/gemm.h"

namespace orrery::nn {
using namespace kernels;
namespace {

constexpr std::string_view cache_operation = "key/value cache", attention_operation = "cached attention";

struct Sizes {
  i64 B, slots, h, capacity, d_k, d_v;
};
Sizes sizes_of(const KeyValueCache& cache) {
  const auto [slots, h, capacity, d_k] = dims<4>(cache.keys, cache_operation);
  return {cache.sequences(), slots, h, capacity, d_k, cache.values.size(3)};
}

// Finds the slot of a sequence.
struct SlotOf {
  const i64* slots;  // null if sequence b has slot b
  explicit SlotOf(const KeyValueCache& cache) : slots(cache.slots.empty() ? nullptr : cache.slots.data()) {}
  i64 operator()(i64 b) const { return slots ? slots[b] : b; }
};

// The first `length` positions of x [slots, h, capacity, d], in a tensor of more slots or a larger capacity.
Tensor with_room(const Tensor& x, i64 length, i64 slots, i64 capacity) {
  const auto [filled, h, before, d] = dims<4>(x, cache_operation);
  Tensor y = Tensor::empty({slots, h, capacity, d}, x.dtype());
  dispatch_floating(
      x.dtype(), cache_operation, [&, heads = filled * h, from_step = before * d, count = length * d](auto t) {
        using T = decltype(t);
        const T* from = x.data<T>();
        T* to = y.write<T>();
        const i64 to_step = y.size(2) * y.size(3);
        for_rows(heads, count, [=](i64 head) { std::copy_n(from + head * from_step, count, to + head * to_step); });
      });
  return y;
}

struct Copy {
  i64 from, to;  // slots
};

// Copies the filled positions. No slot is both read and written.
void copy_slots(KeyValueCache& cache, const std::vector<Copy>& copies) {
  const Sizes s = sizes_of(cache);
  const i64 length = cache.length;
  dispatch_floating(cache.keys.dtype(), cache_operation, [&](auto t) {
    using T = decltype(t);
    T *K = cache.keys.write<T>(), *V = cache.values.write<T>();
    const Copy* copy = copies.data();
    for_rows(static_cast<i64>(copies.size()) * s.h, length * (s.d_k + s.d_v), [=](i64 task) {
      const i64 head = task % s.h;
      const i64 from = (copy[task / s.h].from * s.h + head) * s.capacity,
                to = (copy[task / s.h].to * s.h + head) * s.capacity;
      std::copy_n(K + from * s.d_k, length * s.d_k, K + to * s.d_k);
      std::copy_n(V + from * s.d_v, length * s.d_v, V + to * s.d_v);
    });
  });
}

// Room for n more positions, and a slot of its own for each sequence.
void make_room(KeyValueCache& cache, i64 n) {
  const Sizes s = sizes_of(cache);
  const i64 slots = std::max(s.slots, s.B), needed = cache.length + n;
  if (slots > s.slots || needed > s.capacity) {
    const i64 capacity = needed > s.capacity ? std::max(needed, 2 * s.capacity) : s.capacity;
    Tensor keys = with_room(cache.keys, cache.length, slots, capacity);
    cache.values = with_room(cache.values, cache.length, slots, capacity);  // if memory runs out, nothing has changed
    cache.keys = std::move(keys);
  }
  std::vector<i64> own = cache.slots;
  std::vector<bool> taken(static_cast<size_t>(slots), false);
  std::vector<i64*> again;  // slots that an earlier sequence has
  for (i64& slot : own) {
    if (taken[static_cast<size_t>(slot)]) again.push_back(&slot);
    taken[static_cast<size_t>(slot)] = true;
  }
  std::vector<Copy> copies;
  auto unused = taken.begin();
  for (i64* slot : again) {
    unused = std::find(unused, taken.end(), false);
    *unused = true;
    copies.push_back({*slot, unused - taken.begin()});
    *slot = copies.back().to;
  }
  if (cache.length > 0 && !copies.empty()) copy_slots(cache, copies);
  cache.slots = std::move(own);
}

// Finds the bias of query i with key 0. Those of the other keys follow it.
template <class T> struct BiasRows {
  const T* data;
  i64 of_batch, of_head, of_query, of_first;  // strides; of_first: the offset of query 0
  const T* row(i64 b, i64 head, i64 i) const { return data + b * of_batch + head * of_head + i * of_query + of_first; }
};

template <class T> BiasRows<T> bias_rows(const Tensor& bias, i64 B, i64 h, i64 n, i64 m) {
  if (!bias.defined()) return {nullptr, 0, 0, 0, 0};
  const auto fits = [](i64 size, i64 expected) { return size == 1 || size == expected; };
  if (bias.rank() == 2) {  // entry j - i + n - 1
    const i64 count = distances(n, m);
    check(bias.size(0) == h && bias.size(1) == count, attention_operation, "a bias of ", h, " heads for ", n,
          " queries and ", m, " keys has shape [", h, ", ", count, "], not ", bias.shape());
    return {bias.data<T>(), 0, count, -1, n - 1};
  }
  check(bias.rank() == 4 && fits(bias.size(0), B) && fits(bias.size(1), h) && bias.size(2) == n && bias.size(3) == m,
        attention_operation, "a bias of shape ", bias.shape(), " does not fit scores of shape ", Shape{B, h, n, m});
  const i64 of_head = bias.size(1) == 1 ? 0 : n * m, of_batch = bias.size(0) == 1 ? 0 : bias.size(1) * n * m;
  return {bias.data<T>(), of_batch, of_head, m, 0};
}

}  // namespace

KeyValueCache key_value_cache(i64 B, i64 num_heads, i64 capacity, i64 d_k, i64 d_v, Dtype dtype) {
  return {.keys = Tensor::empty({B, num_heads, capacity, d_k}, dtype),
          .values = Tensor::empty({B, num_heads, capacity, d_v}, dtype)};
}

void KeyValueCache::append(const Tensor& rows) {
  const auto [B, n, columns] = dims<3>(rows, cache_operation);
  const i64 key_value_columns = keys.size(1) * (keys.size(3) + values.size(3));
  check(B == sequences() && columns >= key_value_columns, cache_operation, "rows of shape ", rows.shape(),
        " do not fit a batch of ", sequences(), " with keys and values of ", key_value_columns, " columns");
  check(rows.dtype() == keys.dtype(), cache_operation, "dtypes differ (", rows.dtype(), " and ", keys.dtype(), ")");
  make_room(*this, n);
  dispatch_floating(rows.dtype(), cache_operation, [&, B = B, n = n, columns = columns](auto t) {
    using T = decltype(t);
    const Sizes s = sizes_of(*this);
    const T* from = rows.data<T>() + (columns - key_value_columns);
    T *K = keys.write<T>() + length * s.d_k, *V = values.write<T>() + length * s.d_v;
    const SlotOf slot_of(*this);
    for_rows(B * n, key_value_columns, [=](i64 row) {
      const i64 slot = slot_of(row / n), i = row % n;
      const T* at = from + row * columns;
      for (i64 head = 0; head < s.h; ++head, at += s.d_k)
        std::copy_n(at, s.d_k, K + ((slot * s.h + head) * s.capacity + i) * s.d_k);
      for (i64 head = 0; head < s.h; ++head, at += s.d_v)
        std::copy_n(at, s.d_v, V + ((slot * s.h + head) * s.capacity + i) * s.d_v);
    });
  });
  length += n;
}

void KeyValueCache::choose(std::span<const i64> chosen) {
  check(!chosen.empty(), cache_operation, "at least one sequence must be chosen");
  const SlotOf slot_of(*this);
  std::vector<i64> next;
  for (const i64 b : chosen) {
    check(b >= 0 && b < sequences(), cache_operation, "there is no sequence ", b, " of ", sequences());
    next.push_back(slot_of(b));
  }
  slots = std::move(next);
}

Tensor cached_attention(const Tensor& rows, const KeyValueCache& cache, const Mask& mask, const Tensor& bias) {
  const Sizes s = sizes_of(cache);
  const auto [B, n, columns] = dims<3>(rows, attention_operation);
  const i64 m = cache.length;
  check(B == s.B && columns >= s.h * s.d_k, attention_operation, "rows of shape ", rows.shape(),
        " do not fit a batch of ", s.B, " with queries of ", s.h * s.d_k, " columns");
  check(rows.dtype() == cache.keys.dtype(), attention_operation, "dtypes differ (", rows.dtype(), " and ",
        cache.keys.dtype(), ")");
  mask.check_fits(s.slots, s.h, n, m);
  Tensor y = Tensor::empty({B, n, s.h * s.d_v}, rows.dtype()), scores = Tensor::empty({B * s.h, m}, rows.dtype());
  dispatch_floating(rows.dtype(), attention_operation, [&, n = n, columns = columns](auto t) {
    using T = decltype(t);
    const T *Q = rows.data<T>(), *K = cache.keys.data<T>(), *V = cache.values.data<T>();
    T *out = y.write<T>(), *scratch = scores.write<T>();
    const T factor = static_cast<T>(1.0 / std::sqrt(static_cast<double>(s.d_k)));
    const BiasRows<T> biases = bias_rows<T>(bias, s.B, s.h, n, m);
    const SlotOf slot_of(cache);
    for_rows(s.B * s.h, n * m * (s.d_k + s.d_v), [=, &mask](i64 task) {
      const i64 b = task / s.h, head = task % s.h, slot = slot_of(b);
      T* P = scratch + task * m;
      for (i64 i = 0; i < n; ++i) {
        const KeyRange seen = mask.range(slot, i, n, m);
        const i64 row = b * n + i, count = seen.count(), at = (slot * s.h + head) * s.capacity + seen.first;
        gemm_in_task<T>({Q + row * columns + head * s.d_k, 1, s.d_k}, {K + at * s.d_k, count, s.d_k}, {P, 1, count},
                        Trans::b);
        for (i64 j = 0; j < count; ++j) P[j] *= factor;
        if (biases.data) add_to(count, biases.row(b, head, i) + seen.first, P);
        if (mask.has_table()) mask.hide({slot, head, i, i + 1, n, m}, seen, P);
        softmax_row(P, P, count);
        gemm_in_task<T>({P, 1, count}, {V + at * s.d_v, count, s.d_v}, {out + (row * s.h + head) * s.d_v, 1, s.d_v});
      }
    });
  });
  return y;
}

}  // namespace orrery::nn
