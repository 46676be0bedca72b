// Chapter 9. Loops of multiplications and additions, in machine code, so that no compiler changes them.
//
// Twelve registers are changed in turn, since a result is ready only after four or five cycles, and two instructions
// begin in each cycle. All registers hold zeros.
#include "apps/measure/doctor/checks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "apps/program/stopwatch.h"
#include "core/machine/parallel.h"
#include "core/machine/vector.h"

namespace orrery {
namespace {

// A loop, and how many operations of f32 each of its rounds does.
struct Rounds {
  void (*run)(i64 rounds);
  double operations;
};

#if defined(__x86_64__)

// Those that are changed; vzeroall changes all 16.
#define ORRERY_REGISTERS                                                                                              \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"

void avx512_rounds(i64 rounds) {
  asm volatile(
      "vzeroall\n"
      "1:\n .irp i,2,3,4,5,6,7,8,9,10,11,12,13\n vfmadd231ps %%zmm0, %%zmm1, %%zmm\\i\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper"
      : "+r"(rounds)
      :
      : ORRERY_REGISTERS, "cc");
}

void avx2_rounds(i64 rounds) {
  asm volatile(
      "vzeroall\n"
      "1:\n .irp i,2,3,4,5,6,7,8,9,10,11,12,13\n vfmadd231ps %%ymm0, %%ymm1, %%ymm\\i\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper"
      : "+r"(rounds)
      :
      : ORRERY_REGISTERS, "cc");
}

void avx_rounds(i64 rounds) {
  asm volatile(
      "vzeroall\n"
      "1:\n .irp i,2,4,6,8,10,12\n vmulps %%ymm0, %%ymm\\i, %%ymm\\i\n .endr\n"
      ".irp i,3,5,7,9,11,13\n vaddps %%ymm1, %%ymm\\i, %%ymm\\i\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper"
      : "+r"(rounds)
      :
      : ORRERY_REGISTERS, "cc");
}

void baseline_rounds(i64 rounds) {
  asm volatile(
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n pxor %%xmm\\i, %%xmm\\i\n .endr\n"
      "1:\n .irp i,2,4,6,8,10,12\n mulps %%xmm0, %%xmm\\i\n .endr\n"
      ".irp i,3,5,7,9,11,13\n addps %%xmm1, %%xmm\\i\n .endr\n"
      "dec %0\n jnz 1b"
      : "+r"(rounds)
      :
      : ORRERY_REGISTERS, "cc");
}

#undef ORRERY_REGISTERS

Rounds rounds_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512: return {avx512_rounds, 12 * 2 * 16};
    case VectorLevel::avx2: return {avx2_rounds, 12 * 2 * 8};
    case VectorLevel::avx: return {avx_rounds, 12 * 8};
    case VectorLevel::baseline: return {baseline_rounds, 12 * 4};
  }
  return {};
}

#else

using PeakVector = kernels::VectorOf<float>;

void compiled_rounds(i64 rounds) {
  PeakVector::type sums[12] = {}, x{}, y{};
  for (; rounds > 0; --rounds) {
    for (PeakVector::type& sum : sums) {
      sum += x * y;
      kernels::keep_in_register(sum);
    }
  }
}

Rounds rounds_of(VectorLevel) { return {compiled_rounds, 12.0 * 2 * static_cast<double>(PeakVector::lanes)}; }

#endif

}  // namespace

double peak_speed(VectorLevel level, int cores, double seconds) {
  constexpr i64 rounds = 20'000;  // about 0.1 ms: so short that other programs interrupt few of the runs
  const Rounds loop = rounds_of(level);
  std::vector<double> fastest(static_cast<size_t>(cores), std::numeric_limits<double>::infinity());
  parallel_tasks(cores, [&, to = fastest.data()](i64 thread) {
    const Stopwatch all;
    do to[thread] = std::min(to[thread], seconds_of([&] { loop.run(rounds); }));
    while (all.seconds() < seconds);
  });
  double speed = 0;
  for (const double time : fastest) speed += loop.operations * static_cast<double>(rounds) / time;
  return speed;
}

}  // namespace orrery
