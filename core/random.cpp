// Chapter 8. The sequential generator on top of Philox, and dropout's decisions for many blocks at a time.
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/error.h"

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

// Computes blocks `first`, `first + 1`, ... of a draw; word w of the b-th block is words[4 b + w]. This is philox4x32
// of random.h, written so that each line works on all blocks at once.
template <size_t blocks_at_once> void philox_blocks(const Draw& draw, u64 first, u32* words) {
  // Each word is held in 64 bits, with the upper half 0, so that the widening products need no unpacking.
  std::array<u64, blocks_at_once> c0, c1, c2, c3;
  for (size_t b = 0; b < blocks_at_once; ++b) {
    const u64 block = first + b;
    c0[b] = static_cast<u32>(block);
    c1[b] = draw.step;
    c2[b] = static_cast<u32>(draw.micro * Draw::most_micro + static_cast<u32>(block >> 32));
    c3[b] = draw.index;
  }
  u64 key0 = static_cast<u32>(draw.seed), key1 = draw.seed >> 32;
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (size_t b = 0; b < blocks_at_once; ++b) {
      const u64 low = u64{0xD2511F53} * static_cast<u32>(c0[b]), high = u64{0xCD9E8D57} * static_cast<u32>(c2[b]);
      c0[b] = (high >> 32) ^ c1[b] ^ key0;
      c1[b] = high & 0xFFFFFFFF;
      c2[b] = (low >> 32) ^ c3[b] ^ key1;
      c3[b] = low & 0xFFFFFFFF;
    }
    key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF;
    key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF;
  }
#pragma omp simd
  for (size_t b = 0; b < blocks_at_once; ++b) {
    words[4 * b] = static_cast<u32>(c0[b]);
    words[4 * b + 1] = static_cast<u32>(c1[b]);
    words[4 * b + 2] = static_cast<u32>(c2[b]);
    words[4 * b + 3] = static_cast<u32>(c3[b]);
  }
}

}  // namespace

namespace kernels {

template <class T> void dropout_factors(const Draw& draw, double p, i64 first, i64 blocks, T* factors) {
  constexpr i64 at_once = 16, few = 8;
  const u32 below = keep_below(p);
  const T kept = static_cast<T>(keep_scale(p));
  std::array<u32, 4 * at_once> words;
  std::array<T, 2 * words.size()> rest;
  for (i64 block = 0; block < blocks; block += at_once) {
    const i64 left = blocks - block;
    if (left > few)
      philox_blocks<at_once>(draw, static_cast<u64>(first + block), words.data());
    else
      philox_blocks<few>(draw, static_cast<u64>(first + block), words.data());
    T* to = left >= at_once ? factors + block * decisions_per_block : rest.data();
    const size_t made = left > few ? words.size() : words.size() / 2;
#pragma omp simd
    for (size_t w = 0; w < made; ++w) {
      to[2 * w] = (words[w] & 0xFFFF) < below ? kept : T{0};
      to[2 * w + 1] = (words[w] >> 16) < below ? kept : T{0};
    }
    if (left < at_once) std::copy_n(to, left * decisions_per_block, factors + block * decisions_per_block);
  }
}

template void dropout_factors(const Draw&, double, i64, i64, float*);
template void dropout_factors(const Draw&, double, i64, i64, double*);

}  // namespace kernels

}  // namespace orrery
