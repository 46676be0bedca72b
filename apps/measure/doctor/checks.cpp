// Chapter 9. The doctor's own checks.
//
// The peak of a CPU comes from loops of multiplications and additions, in machine code, so that no compiler changes
// them. Twelve registers are changed in turn, since a result is ready only after four or five cycles, and two
// instructions begin in each cycle. All registers hold zeros.
#include "apps/measure/doctor/checks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "apps/measure/bench/micro.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "core/machine/parallel.h"
#include "core/machine/vector.h"
#include "core/products/precision.h"

namespace orrery {
namespace {

bool is_battery_used(const SystemFiles& files) {
  const std::string folder = "/sys/class/power_supply";
  bool battery = false, mains = false;
  for (const std::string& name : files.names(folder)) {
    const std::string type = files.text(folder + "/" + name + "/type");
    battery = battery || type.starts_with("Battery");
    mains = mains || (!type.starts_with("Battery") && files.number(folder + "/" + name + "/online", 0) == 1);
  }
  return battery && !mains;
}

}  // namespace

FreeSpace free_space_of(const std::string& folder) {
  std::error_code unknown;
  const auto space = std::filesystem::space(folder, unknown);
  return {.bytes = unknown ? -1 : static_cast<i64>(std::min<u64>(space.available, u64{1} << 62)),
          .writable = ::access(folder.c_str(), W_OK) == 0};
}

Finding disk_finding(const FreeSpace& space) {
  constexpr i64 little = i64{2} << 30, very_little = i64{100} << 20;
  const std::string subject = "disk",
                    text = numbers("%.1f GB free in this folder", static_cast<double>(space.bytes) / (1 << 30)),
                    elsewhere = "save models elsewhere, or make room";
  if (!space.writable) return {Verdict::note, subject, "this folder cannot be written", "save models elsewhere"};
  if (space.bytes < 0) return {Verdict::ok, subject, "the system does not tell how much is free in this folder"};
  if (space.bytes < very_little) return {Verdict::harmful, subject, text + ": a model may not fit", elsewhere};
  if (space.bytes < little)
    return {Verdict::note, subject, text + ": the state of a large training may not fit", elsewhere};
  return {Verdict::ok, subject, text};
}

Finding power_finding(const SystemFiles& files) {
  const std::string subject = "power", folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  if (is_battery_used(files))
    return {Verdict::note, subject, "the machine runs on its battery, and may be slower for it", "plug it in"};
  const i64 most = files.number(folder + "scaling_max_freq", 0),
            possible = files.number(folder + "cpuinfo_max_freq", 0);
  if (most <= 0 || possible <= 0) return {Verdict::ok, subject, "the system sets no limit that it tells of"};
  const std::string limit =
      numbers("%.1f of %.1f GHz", 1e-6 * static_cast<double>(most), 1e-6 * static_cast<double>(possible));
  if (100 * most < 95 * possible)
    return {2 * most <= possible ? Verdict::harmful : Verdict::note, subject, "the clock is limited to " + limit,
            "raise it: cpupower frequency-set --max"};
  // With the driver of newer Intel and AMD CPUs, `powersave` is the usual governor, and the CPU decides.
  const std::string governor = files.text(folder + "scaling_governor"), driver = files.text(folder + "scaling_driver");
  if (governor.starts_with("powersave") && !driver.starts_with("intel_pstate") && !driver.starts_with("amd"))
    return {Verdict::note, subject, "the governor powersave keeps the clock low",
            "cpupower frequency-set -g performance"};
  return {Verdict::ok, subject, "clock up to " + limit};
}

namespace {

// What is measured chooses how products are computed; afterwards they are computed as before.
struct ProductsAsBefore {
  const ProductOptions before{.by_blas = uses_blas(), .bf16 = uses_bf16()};
  ~ProductsAsBefore() { use_products(before); }
};

}  // namespace

Speed measured_speed_of(const Machine& machine) {
  // A product takes a millisecond: beside other programs, some runs are not interrupted. It has rows for every core.
  // The clock may change at any time, so all three are measured in turn.
  constexpr i64 n = 384;
  constexpr int rounds = 3;
  constexpr double of_peak = 0.02, too_long = 0.5;
  const int cores = std::min(machine.threads, machine.allowed);
  const i64 rows = std::max<i64>(n, n / 2 * cores);
  Speed best;
  const ProductsAsBefore scope;
  use_products({.by_blas = scope.before.by_blas});  // the peak is that of f32
  const Stopwatch watch;
  for (int round = 0; round < rounds && (round == 0 || watch.seconds() < too_long); ++round) {
    best.peak = std::max(best.peak, peak_speed(machine.level, cores, of_peak));
    best.ours = std::max(best.ours, measured_speed({"one", Trans::none, rows, n, n}));
    best.blas = std::max(
        best.blas, measured_speed({"one on each thread", Trans::none, n, n, n, std::max(2, machine.threads)}, true));
  }
  return best;
}

Finding speed_finding(const Speed& speed, bool busy, const Machine& machine) {
  constexpr double good = 0.5, poor = 0.35;
  const double ours = speed.ours / speed.peak, blas = speed.blas / speed.peak;
  const std::string subject = "speed",
                    text = numbers(
                        "products reach %.0f GF/s by %s and %.0f by OpenBLAS%s: %.0f and %.0f %% of what the CPU "
                        "can do (%.0f)",
                        1e-9 * speed.ours, machine.uses_blas ? "OpenBLAS in tiles" : "our kernels", 1e-9 * speed.blas,
                        machine.uses_blas ? " at once" : ", which none uses", 100 * ours, 100 * blas,
                        1e-9 * speed.peak);
  const double used = machine.uses_blas ? blas : ours;
  if (used >= good) return {Verdict::ok, subject, text};
  if (busy) return {Verdict::note, subject, text + ", beside other programs", "measure again when these have ended"};
  return {used < poor ? Verdict::harmful : Verdict::note, subject, text, "see the lines build, threads and blas"};
}

Finding bf16_finding(const std::string& arithmetic, double times_f32) {
  constexpr double faster = 1.2;
  // Beside other programs, the same arithmetic may seem faster too.
  const bool pays = times_f32 >= faster && !arithmetic.starts_with("f32");
  return {arithmetic.ends_with("wrong products here") ? Verdict::note : Verdict::ok, "bf16",
          "--precision bf16 computes products by " + arithmetic + numbers(", %.1f times as fast as f32", times_f32) +
              (pays ? ": trainings of large models would be faster with it" : ""),
          ""};
}

double bf16_speed_in_f32() {
  const ProductsAsBefore scope;
  const auto speed = [](bool bf16) {
    constexpr i64 n = 512;
    use_products({.bf16 = bf16});
    return measured_speed({"one", Trans::none, n * threads(), n, n});
  };
  const double f32_speed = speed(false);
  return speed(true) / f32_speed;
}

std::vector<Finding> all_findings(const Machine& machine, Speed& speed) {
  std::vector<Finding> all = findings(machine);
  all.push_back(disk_finding(free_space_of(".")));
  all.push_back(power_finding(SystemFiles()));
  all.push_back(bf16_finding(bf16_arithmetic(), bf16_speed_in_f32()));
  const Finding load = busy_finding(watch_cores(machine.cores), machine.cores);
  all.push_back(load);
  try {
    speed = measured_speed_of(machine);
    all.push_back(speed_finding(speed, load.verdict != Verdict::ok, machine));
  } catch (const Error& error) {  // an OpenBLAS that several threads cannot call
    all.push_back({machine.uses_blas ? Verdict::harmful : Verdict::note, "speed", error.what(), ""});
  }
  return all;
}

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
