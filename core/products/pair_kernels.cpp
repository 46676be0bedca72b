// Chapter 8. The kernels that multiply bf16. Each function is compiled for the instructions that it needs, whatever the
// rest of the library is compiled for, and is called only where the CPU has them.
#include "core/products/pair_kernels.h"

#include <bit>

#include "core/machine/cpu_features.h"
#include "core/products/bf16.h"
#include "core/products/packing.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace orrery::kernels {
namespace {

constexpr i64 step_size = pair_block * pairs_in_step;  // pairs of A, or of B, in a step

float even(u32 pair) { return std::bit_cast<float>(pair << 16); }
float odd(u32 pair) { return std::bit_cast<float>(pair & 0xffff0000); }

void nothing() {}

#if defined(__x86_64__)

// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  unsigned char palette = 1, start_row = 0, reserved[14] = {};
  unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// GCC takes _tile_loadconfig to read 8 bytes, and _tile_loadd to read nothing: memory has to be written before.
void finish_stores() { asm volatile("" ::: "memory"); }

[[gnu::target("amx-tile")]] void begin_tiles() {
  const TileConfig config;
  asm volatile("" ::"m"(config));
  _tile_loadconfig(&config);
}
[[gnu::target("amx-tile")]] void end_tiles() { _tile_release(); }

// Tiles 0 to 3 hold the quarters of c; 4 and 5 the upper and lower rows of a step of A, 6 and 7 the left and right
// columns of B.
[[gnu::target("amx-tile,amx-bf16")]] void tiles(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add) {
  constexpr i64 half = pair_block / 2, bytes_of_a = pairs_in_step * 4, bytes_of_b = pair_block * 4;
  const i64 bytes_of_c = stride * 4;
  float* lower = c + half * stride;
  finish_stores();
  if (add) {
    _tile_loadd(0, c, bytes_of_c);
    _tile_loadd(1, c + half, bytes_of_c);
    _tile_loadd(2, lower, bytes_of_c);
    _tile_loadd(3, lower + half, bytes_of_c);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (i64 s = 0; s < steps; ++s, a += step_size, b += step_size) {
    _tile_loadd(4, a, bytes_of_a);
    _tile_loadd(5, a + half * pairs_in_step, bytes_of_a);
    _tile_loadd(6, b, bytes_of_b);
    _tile_loadd(7, b + half, bytes_of_b);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, bytes_of_c);
  _tile_stored(1, c + half, bytes_of_c);
  _tile_stored(2, lower, bytes_of_c);
  _tile_stored(3, lower + half, bytes_of_c);
}

// Eight rows of c at a time, in 16 registers.
[[gnu::target("avx512f,avx512bf16")]] void dots(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add) {
  constexpr i64 half = pair_block / 2, rows = 8;
  for (i64 i = 0; i < pair_block; i += rows, a += rows * pairs_in_step, c += rows * stride) {
    __m512 sum[rows][2];
    for (i64 r = 0; r < rows; ++r)
      for (i64 v = 0; v < 2; ++v) sum[r][v] = add ? _mm512_loadu_ps(c + r * stride + v * half) : _mm512_setzero_ps();
    for (i64 s = 0; s < steps; ++s)
      for (i64 p = 0; p < pairs_in_step; ++p) {
        const u32 *left = a + s * step_size + p, *right = b + s * step_size + p * pair_block;
        const __m512i b0 = _mm512_loadu_si512(right), b1 = _mm512_loadu_si512(right + half);
        for (i64 r = 0; r < rows; ++r) {
          const __m512i pair = _mm512_set1_epi32(static_cast<int>(left[r * pairs_in_step]));
          sum[r][0] = _mm512_dpbf16_ps(sum[r][0], (__m512bh)pair, (__m512bh)b0);
          sum[r][1] = _mm512_dpbf16_ps(sum[r][1], (__m512bh)pair, (__m512bh)b1);
        }
      }
    for (i64 r = 0; r < rows; ++r)
      for (i64 v = 0; v < 2; ++v) _mm512_storeu_ps(c + r * stride + v * half, sum[r][v]);
  }
}

// The square is read as 16 vectors of pairs, along its rows or its columns, and transposed where it is written
// otherwise. VCVTNE2PS2BF16 rounds as rounded_to_bf16 does, but takes numbers below the least normal one for 0; so do
// the instructions that multiply. All is inlined, since other functions are compiled without these instructions.
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::flatten]] void pack(const Strided<float>& from, i64 rows, i64 depth,
                                                                       bool by_pairs, u32* to, i64 stride) {
  using Halves = VectorOf<unsigned short, 32>::type;
  using Words = VectorOf<u32, 16>::type;
  const auto first = [](i64 count) { return count <= 0 ? 0u : count >= 16 ? 0xffffu : (1u << count) - 1; };
  const bool along_rows = from.column == 1;
  Words v[16];
  if (along_rows) {
    const unsigned lower = first(depth), upper = first(depth - 16);
    for (i64 r = 0; r < 16; ++r) {
      const float* x = from.data + r * from.row;
      const unsigned used = r < rows ? 0xffff : 0;
      v[r] = (Words)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(static_cast<__mmask16>(used & upper), x + 16),
                                        _mm512_maskz_loadu_ps(static_cast<__mmask16>(used & lower), x));
    }
  } else {
    const unsigned used = first(rows);
    for (i64 p = 0; p < 16; ++p) {
      const float* x = from.data + 2 * p * from.column;
      const auto of_depth = [=](i64 i) { return static_cast<__mmask16>(i < depth ? used : 0); };
      const Halves two = (Halves)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(of_depth(2 * p + 1), x + from.column),
                                                     _mm512_maskz_loadu_ps(of_depth(2 * p), x));
      v[p] = (Words)__builtin_shufflevector(two, two, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9,
                                            25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  }
  if (by_pairs == along_rows) transpose_vectors<16>(v);
  for (i64 i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * stride, (__m512i)v[i]);
}

// Linux gives a process tiles only if it asks for them: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
bool may_use_tiles() {
  constexpr int request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

// Intel's cores with tiles begin VDPBF16PS every second cycle, and two multiply-adds of f32 in each: the same products
// take twice as long as in f32 (apps/measure/bench/README.md). Cooper Lake has no tiles, and was made for VDPBF16PS.
bool dots_are_fast() {
  __builtin_cpu_init();
  return !__builtin_cpu_is("intel") || __builtin_cpu_is("cooperlake");
}

#endif

}  // namespace

void plain_tiles(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add) {
  for (i64 i = 0; i < pair_block; ++i)
    for (i64 j = 0; j < pair_block; ++j) {
      float total = add ? c[i * stride + j] : 0;
      for (i64 s = 0; s < steps; ++s) {
        float of_even = 0, of_odd = 0;
        for (i64 p = 0; p < pairs_in_step; ++p) {
          const u32 x = a[s * step_size + i * pairs_in_step + p], y = b[s * step_size + p * pair_block + j];
          of_even += even(x) * even(y);
          of_odd += odd(x) * odd(y);
        }
        total += of_even + of_odd;
      }
      c[i * stride + j] = total;
    }
}

void plain_dots(const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add) {
  for (i64 i = 0; i < pair_block; ++i)
    for (i64 j = 0; j < pair_block; ++j) {
      float total = add ? c[i * stride + j] : 0;
      for (i64 s = 0; s < steps; ++s)
        for (i64 p = 0; p < pairs_in_step; ++p) {
          const u32 x = a[s * step_size + i * pairs_in_step + p], y = b[s * step_size + p * pair_block + j];
          total += odd(x) * odd(y);
          total += even(x) * even(y);
        }
      c[i * stride + j] = total;
    }
}

void plain_pack(const Strided<float>& from, i64 rows, i64 depth, bool by_pairs, u32* to, i64 stride) {
  const auto bits = [&](i64 r, i64 p) {
    return r < rows && p < depth ? std::bit_cast<u32>(rounded_to_bf16(from.data[r * from.row + p * from.column])) : 0;
  };
  for (i64 r = 0; r < pairs_in_step; ++r)
    for (i64 p = 0; p < pairs_in_step; ++p)
      to[by_pairs ? p * stride + r : r * stride + p] = bits(r, 2 * p) >> 16 | bits(r, 2 * p + 1);
}

std::vector<PairKernel> usable_pair_kernels() {
  std::vector<PairKernel> usable;
#if defined(__x86_64__)
  const CpuAnswers cpu = cpu_answers();
  const auto has = [&](CpuAnswers::Word word, unsigned bit, unsigned registers) {
    return (cpu.words[word] >> bit & 1) != 0 && (cpu.saved_registers & registers) == registers;
  };
  constexpr unsigned zmm = 0xE6, tile_registers = 0x60000;  // XCR0
  const bool packs = has(CpuAnswers::leaf7_ebx, 16, zmm) && has(CpuAnswers::leaf7_ebx, 30, zmm) &&
                     has(CpuAnswers::leaf7_1_eax, 5, zmm);  // AVX-512 F, BW and BF16
  if (!packs) return usable;
  if (has(CpuAnswers::leaf7_edx, 24, tile_registers) && has(CpuAnswers::leaf7_edx, 22, tile_registers) &&
      may_use_tiles())
    usable.push_back({"AMX", pack, tiles, plain_tiles, true, begin_tiles, end_tiles});
  usable.push_back({"AVX512-BF16", pack, dots, plain_dots, dots_are_fast(), nothing, nothing});
#endif
  return usable;
}

std::vector<PairKernel> plain_pair_kernels() {
  return {{"AMX in plain C++", plain_pack, plain_tiles, plain_tiles, false, nothing, nothing},
          {"AVX512-BF16 in plain C++", plain_pack, plain_dots, plain_dots, false, nothing, nothing}};
}

}  // namespace orrery::kernels
