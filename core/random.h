// Chapter 8. Random numbers from a counter: Philox 4x32-10.
//
// "Parallel random numbers: as easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw 2011): ten rounds of multiply and xor turn
// a 128-bit counter and a 64-bit key into 128 random bits. Number i is a function of (key, i) alone. So any thread can
// draw any number, backward can draw the dropout mask of forward again, and two integers restore a generator.
#pragma once

#include <array>
#include <vector>

#include "core/dtype.h"

namespace orrery {

using PhiloxBlock = std::array<u32, 4>;

/// The four random words for `counter` and `key`. The tests compare them with those of Random123, the authors' library.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<u32, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const u64 low = u64{0xD2511F53} * counter[0], high = u64{0xCD9E8D57} * counter[2];
    counter = {static_cast<u32>(high >> 32) ^ counter[1] ^ key[0], static_cast<u32>(high),
               static_cast<u32>(low >> 32) ^ counter[3] ^ key[1], static_cast<u32>(low)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A sequence of random numbers. Its state is (seed, position): two generators with equal ones draw the same numbers,
/// so that a generator can be stored and compared. Its other members are caches.
class Rng {
 public:
  explicit Rng(u64 seed, u64 position = 0) : seed_(seed), position_(position) {}
  /// Every draw is 0 and takes no time: for building a model whose numbers are set afterwards, for example from a file.
  static Rng of_zeros() {
    Rng rng(0);
    rng.draws_zeros_ = true;
    return rng;
  }
  /// Every draw is a tensor without memory (Tensor::outline): for counting the numbers of a model without building it.
  static Rng of_shapes() {
    Rng rng(0);
    rng.draws_shapes_ = true;
    return rng;
  }
  bool draws_zeros() const { return draws_zeros_; }
  bool draws_shapes() const { return draws_shapes_; }

  u64 seed() const { return seed_; }
  u64 position() const { return position_; }

  /// 64 random bits; all other draws are made from these.
  u64 bits64();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();
  /// Standard normal, by the Box-Muller method.
  double normal();
  /// Uniform in {low, ..., high - 1}; needs low < high.
  i64 integer(i64 low, i64 high);
  /// 0, ..., count - 1 in random order, each order being equally likely.
  std::vector<i64> permutation(i64 count);

 private:
  u64 seed_;
  u64 position_;         // how many times 64 bits were drawn
  PhiloxBlock words_{};  // of the block of the latest draw: every block gives two draws
  bool has_words_ = false;
  bool draws_zeros_ = false, draws_shapes_ = false;
};

/// Identifies one dropout mask of a training run: mask number `index` of one pass. Its bits depend on nothing else.
struct Draw {
  /// Micro-batches have numbers below this, since the number shares a 32-bit word of Philox's counter with the block
  /// number.
  static constexpr u32 most_micro = 1 << 16;

  u64 seed = 0;
  u32 step = 0, micro = 0, index = 0;
};

namespace kernels {

/// Dropout decides with 16 random bits for each element: it keeps the element if they are below `keep_below(p)`. A
/// block holds 8 such decisions, and each row of a matrix begins with a new block: element (row, column) uses decision
/// number row * round_up(columns, 8) + column.
inline constexpr i64 decisions_per_block = 8;

/// How many of the 65536 patterns of 16 bits keep an element that is dropped with probability p.
constexpr u32 keep_below(double p) { return static_cast<u32>((1.0 - p) * 65536.0 + 0.5); }
/// The factor of kept elements, which preserves the mean: 1 / (the probability of keeping, rounded to 1/65536).
constexpr double keep_scale(double p) { return keep_below(p) == 0 ? 0.0 : 65536.0 / keep_below(p); }

/// The eight 16-bit decisions of block number `block` of a draw.
constexpr std::array<u16, 8> decisions(const Draw& draw, u64 block) {
  const PhiloxBlock words = philox4x32(
      {static_cast<u32>(block), draw.step, draw.micro * Draw::most_micro + static_cast<u32>(block >> 32), draw.index},
      {static_cast<u32>(draw.seed), static_cast<u32>(draw.seed >> 32)});
  std::array<u16, 8> result{};
  for (size_t i = 0; i < 8; ++i) result[i] = static_cast<u16>(words[i / 2] >> (16 * (i % 2)));
  return result;
}

/// The number of blocks that a row of `columns` decisions needs.
constexpr i64 blocks_of_row(i64 columns) { return (columns + decisions_per_block - 1) / decisions_per_block; }

/// Writes the factors of dropout with probability p, each 0 or `keep_scale(p)`, for `blocks` blocks starting at
/// `first`: 8 factors for each block. The decisions are those above, but many blocks are computed at a time in vector
/// registers.
template <class T> void dropout_factors(const Draw& draw, double p, i64 first, i64 blocks, T* factors);
/// y[i] = x[i] times the factor of i, for n numbers, with the same factors; y may be x.
template <class T> void drop(const Draw& draw, double p, i64 first, i64 n, const T* x, T* y);

}  // namespace kernels

}  // namespace orrery
