// Chapter 8. The sequential generator on top of Philox, and dropout's decisions for many blocks at a time.
#include "core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/machine/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery {

u64 Rng::bits64() {
  if (draws_zeros_) return 0;
  // Separates these draws from those of dropout, whose last counter word is the number of the mask within its pass.
  constexpr u32 sequence = 0xFFFFFFFF;
  const u64 block = position_ / 2;
  const size_t first = 2 * (position_ % 2);
  if (first == 0 || !has_words_)
    words_ = philox4x32({static_cast<u32>(block), static_cast<u32>(block >> 32), 0, sequence},
                        {static_cast<u32>(seed_), static_cast<u32>(seed_ >> 32)});
  has_words_ = true;
  ++position_;
  return words_[first] | u64{words_[first + 1]} << 32;
}

double Rng::uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

i64 Rng::integer(i64 low, i64 high) {
  check(low < high, "integer", "needs low < high, got ", low, " and ", high);
  const u64 range = static_cast<u64>(high) - static_cast<u64>(low);
  // 2^64 is not a multiple of every range. Values from `limit` on would favour small results, so draw again.
  const u64 limit = range * (~u64{0} / range);
  u64 value = bits64();
  while (value >= limit) value = bits64();
  return static_cast<i64>(static_cast<u64>(low) + value % range);  // unsigned: the sum may exceed 2^63 on the way
}

std::vector<i64> Rng::permutation(i64 count) {
  check(count >= 0, "permutation", "cannot have ", count, " elements");
  std::vector<i64> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), i64{0});
  for (size_t i = order.size(); i > 1; --i)  // Fisher and Yates: place i gets one of those not yet placed
    std::swap(order[i - 1], order[static_cast<size_t>(integer(0, static_cast<i64>(i)))]);
  return order;
}

namespace {

// A word of 32 bits in the lower half of each lane; the upper half is not used.
using Words = kernels::VectorOf<u64>::type;
constexpr i64 lanes = kernels::VectorOf<u64>::lanes;

// The products of the words. Of lane * lane GCC 12 would multiply all 64 bits with AVX-512 (vpmullq), which takes half
// of dropout's time.
Words products(const Words& a, u64 b) {
#if defined(__AVX512F__)
  constexpr __mmask8 all = 0xFF;  // without a mask, GCC 12 warns of a number without a value in its own header
  return (Words)_mm512_maskz_mul_epu32(all, (__m512i)a, _mm512_set1_epi64(static_cast<long long>(b)));
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(static_cast<long long>(b)));
#elif defined(__x86_64__) && !defined(__AVX__)
  return (Words)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(static_cast<long long>(b)));
#else
  return (a & 0xFFFFFFFF) * b;
#endif
}

// Computes the decisions of blocks `first`, `first + 1`, ... of a draw, as many as `vectors` vectors have lanes. This
// is philox4x32 of random.h, written so that each line works on all blocks at once.
template <i64 vectors> void philox_blocks(const Draw& draw, u64 first, u16* decisions) {
  Words c0[vectors], c1[vectors], c2[vectors], c3[vectors], lane_numbers{};
  for (i64 lane = 0; lane < lanes; ++lane) lane_numbers[lane] = static_cast<u64>(lane);  // a constant
  for (i64 v = 0; v < vectors; ++v) {
    c0[v] = lane_numbers + (first + static_cast<u64>(v * lanes));
    c1[v] = Words{} + draw.step;
    c2[v] = (c0[v] >> 32) + draw.micro * Draw::most_micro;
    c3[v] = Words{} + draw.index;
  }
  u64 key0 = draw.seed, key1 = draw.seed >> 32;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    for (i64 v = 0; v < vectors; ++v) {
      const Words low = products(c0[v], 0xD2511F53), high = products(c2[v], 0xCD9E8D57);
      c0[v] = (high >> 32) ^ c1[v] ^ key0;
      c1[v] = high;
      c2[v] = (low >> 32) ^ c3[v] ^ key1;
      c3[v] = low;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (i64 v = 0; v < vectors; ++v) {
    const Words front = (c0[v] & 0xFFFFFFFF) | c1[v] << 32, back = (c2[v] & 0xFFFFFFFF) | c3[v] << 32;
    u64 words[2 * lanes];
    for (i64 lane = 0; lane < lanes; ++lane) {
      words[2 * lane] = front[lane];
      words[2 * lane + 1] = back[lane];
    }
    std::memcpy(decisions + v * lanes * kernels::decisions_per_block, words, sizeof words);
  }
}
static_assert(std::endian::native == std::endian::little, "the lower half of a word is the first of its decisions");

}  // namespace

namespace kernels {

namespace {

// Calls use(i, count, factor) for all elements of `blocks` blocks from `first` on: for `count` of them, from number i
// on, where factor(k) is that of element i + k.
template <class T, class Use> void for_factors(const Draw& draw, double p, i64 first, i64 blocks, const Use& use) {
  constexpr i64 vectors = vector_registers / 8, at_once = vectors * lanes;  // they leave half of the registers free
  static_assert(vectors >= 2);
  alignas(64) std::array<u16, at_once * decisions_per_block> bits;
  const u16 last = static_cast<u16>(keep_below(p) - 1);  // as wide as decisions; if none is kept, `kept` is 0
  const T kept = static_cast<T>(keep_scale(p));
  for (i64 block = 0, made = 0; block < blocks; block += made) {
    const i64 left = blocks - block;
    const u64 number = static_cast<u64>(first + block);
    made = std::min(left, left >= at_once ? at_once : left > lanes ? 2 * lanes : lanes);
    if (made == at_once)
      philox_blocks<vectors>(draw, number, bits.data());
    else
      made > lanes ? philox_blocks<2>(draw, number, bits.data()) : philox_blocks<1>(draw, number, bits.data());
    use(block * decisions_per_block, made * decisions_per_block,
        [=, of = bits.data()](i64 k) { return of[k] <= last ? kept : T{0}; });
  }
}

}  // namespace

template <class T> void dropout_factors(const Draw& draw, double p, i64 first, i64 blocks, T* factors) {
  for_factors<T>(draw, p, first, blocks, [=](i64 begin, i64 count, auto factor) {
    T* to = factors + begin;
#pragma omp simd
    for (i64 i = 0; i < count; ++i) to[i] = factor(i);
  });
}

template <class T> void drop(const Draw& draw, double p, i64 first, i64 n, const T* x, T* y) {
  for_factors<T>(draw, p, first, blocks_of_row(n), [=](i64 begin, i64 count, auto factor) {
    const T* from = x + begin;
    T* to = y + begin;
    count = std::min(count, n - begin);
#pragma omp simd
    for (i64 i = 0; i < count; ++i) to[i] = from[i] * factor(i);
  });
}

template void dropout_factors(const Draw&, double, i64, i64, float*);
template void dropout_factors(const Draw&, double, i64, i64, double*);
template void drop(const Draw&, double, i64, i64, const float*, float*);
template void drop(const Draw&, double, i64, i64, const double*, double*);

}  // namespace kernels

}  // namespace orrery
