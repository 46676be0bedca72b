// Chapter 9. The triad, and reading memory.
#include "apps/measure/bench/micro.h"

#include <cstring>

#include "core/kernels/elementwise.h"
#include "core/machine/vector.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Sums in eight registers, so that the arithmetic takes less time than the memory. n must be a multiple of 8 lanes.
float sum_of(const float* x, i64 n) {
  using Vector = kernels::VectorOf<float>::type;
  constexpr i64 lanes = kernels::VectorOf<float>::lanes, registers = 8;
  Vector sum[registers] = {};
  for (i64 i = 0; i + registers * lanes <= n; i += registers * lanes) {
    for (i64 r = 0; r < registers; ++r) {
      Vector next;
      std::memcpy(&next, x + i + r * lanes, sizeof next);
      sum[r] += next;
    }
  }
  float total = 0;
  for (const Vector& part : sum)
    for (i64 k = 0; k < lanes; ++k) total += part[k];
  return total;
}

}  // namespace

void triad(const Tensor& b, const Tensor& c, Tensor& a) {
  kernels::map<float>(b.count(), b.data<float>(), c.data<float>(), a.write<float>(),
                      [](float x, float y) { return x + 3.0F * y; });
}

MemoryReader::MemoryReader() : numbers_(zeros({256, 1 << 18})), sums_(zeros({256})) {}

void MemoryReader::read() {
  const i64 chunk = numbers_.size(1);
  parallel_tasks(numbers_.size(0), [=, from = numbers_.data<float>(), to = sums_.write<float>()](i64 i) {
    to[i] = sum_of(from + i * chunk, chunk);
  });
}

}  // namespace orrery
