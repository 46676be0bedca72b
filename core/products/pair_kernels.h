// Chapter 8. Instructions that multiply bf16: AMX's tiles (Intel, since Sapphire Rapids) and AVX512-BF16's dot products
// (also AMD, since Zen 4).
//
// Both add up pairs: a number of 32 bits holds two neighbours along the inner index. A kernel computes a block of C
// with 32 rows and columns, 32 inner numbers in a step. So of A it reads, step by step, 32 rows of 16 pairs, and of B
// 16 rows with the pairs of 32 columns.
//
// Each kernel has a plain form that does the same, by the definition of its instruction, on every CPU. Tests run it
// through the same packing, and a real kernel is used only if it agrees with its plain form (packed_product.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/products/gemm.h"
#include "core/products/small_product.h"

namespace orrery::kernels {

/// Rows and columns of a block, and inner numbers of a step; pairs of a step.
inline constexpr i64 pair_block = 32, pairs_in_step = 16;

/// c [32, 32] = the sum over all steps, or c += ...; the rows of c are `stride` apart.
using PairBlock = void (*)(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add);

/// Packs a square of at most 16 rows and 32 columns of `from`, whose numbers follow one another along rows or columns,
/// as 16 x 16 pairs; zeros beyond `rows` and `depth`. A row of `to`, `stride` apart, holds the pairs of a row or, with
/// `by_pairs`, a pair of each row.
using PackSquare = void (*)(const Strided<float>& from, i64 rows, i64 depth, bool by_pairs, u32* to, i64 stride);

struct PairKernel {
  const char* name;
  PackSquare pack;
  PairBlock block;
  PairBlock plain;
  bool pays;        ///< it is faster than f32 here
  void (*begin)();  ///< to be called by a thread before its first block, and `end` after its last
  void (*end)();
};

/// Intel's manual, volume 2A, TDPBF16PS: even and odd numbers of a step are added up apart, then to c.
void plain_tiles(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add);
/// The same manual, VDPBF16PS: the odd number of a pair is added to c, then the even one.
void plain_dots(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add);
void plain_pack(const Strided<float>& from, i64 rows, i64 depth, bool by_pairs, u32* to, i64 stride);

/// The kernels that this CPU and its system can run, fastest first. Asks Linux for the use of tiles.
std::vector<PairKernel> usable_pair_kernels();
/// The plain forms as kernels.
std::vector<PairKernel> plain_pair_kernels();

/// The kernel that multiplies bf16 here: the fastest that this CPU can run, that is faster than f32, and that agrees
/// with its plain form (packed_product.h). Without one, factors are rounded, and multiplied as f32. Chosen by the first
/// call, which must not come from a task.
struct Bf16Kernel {
  std::optional<PairKernel> kernel{};
  std::string wrong{};  ///< one that failed; "" if none did
};
const Bf16Kernel& bf16_kernel();

}  // namespace orrery::kernels
