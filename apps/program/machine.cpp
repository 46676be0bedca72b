// Chapter 9. Asks the CPU, OpenBLAS and the environment for everything that the speed of a run depends on.
//
// Serves: apps/toy/toy.cpp
#include "apps/program/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <thread>

#include "apps/program/progress.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"

namespace orrery {
namespace {

struct Kernel {
  std::string_view name;
  VectorLevel level;
};
// OpenBLAS's kernels for x86 (its file TargetList.txt).
constexpr Kernel x86_kernels[] = {
    {"Prescott", VectorLevel::baseline},   {"Core2", VectorLevel::baseline},    {"Penryn", VectorLevel::baseline},
    {"Dunnington", VectorLevel::baseline}, {"Nehalem", VectorLevel::baseline},  {"Atom", VectorLevel::baseline},
    {"Athlon", VectorLevel::baseline},     {"Opteron", VectorLevel::baseline},  {"Barcelona", VectorLevel::baseline},
    {"Bobcat", VectorLevel::baseline},     {"Nano", VectorLevel::baseline},     {"Sandybridge", VectorLevel::avx},
    {"Bulldozer", VectorLevel::avx},       {"Piledriver", VectorLevel::avx},    {"Steamroller", VectorLevel::avx},
    {"Haswell", VectorLevel::avx2},        {"Zen", VectorLevel::avx2},          {"Excavator", VectorLevel::avx2},
    {"SkylakeX", VectorLevel::avx512},     {"Cooperlake", VectorLevel::avx512}, {"SapphireRapids", VectorLevel::avx512},
};

// Names are compared without regard to case: OPENBLAS_CORETYPE=haswell works too.
bool same_name(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return (x | 0x20) == (y | 0x20); };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

std::string_view name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512: return "AVX-512";
    case VectorLevel::avx2: return "AVX2";
    case VectorLevel::avx: return "AVX";
    case VectorLevel::baseline: return "SSE";
  }
  return "?";
}

// "OpenBLAS 0.3.21" from "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string version_of(const std::string& config) {
  std::istringstream words(config);
  std::string library, version;
  words >> library >> version;
  return library + " " + version;
}

}  // namespace

i64 physical_memory() { return static_cast<i64>(sysconf(_SC_PHYS_PAGES)) * static_cast<i64>(sysconf(_SC_PAGESIZE)); }

VectorLevel cpu_vector_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return VectorLevel::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return VectorLevel::avx2;
  if (__builtin_cpu_supports("avx")) return VectorLevel::avx;
#endif
  return VectorLevel::baseline;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::optional<VectorLevel> kernel_vector_level(std::string_view kernel) {
  for (const Kernel& known : x86_kernels)
    if (same_name(known.name, kernel)) return known.level;
  return std::nullopt;
}

std::optional<std::string> kernel_warning(const char* coretype, std::string_view kernel, VectorLevel cpu) {
  const std::optional<VectorLevel> level = kernel_vector_level(kernel);
  if (coretype == nullptr || *coretype == '\0' || !level || *level >= cpu) return std::nullopt;
  std::ostringstream warning;
  warning << "warning: OPENBLAS_CORETYPE=" << coretype << " limits matrix products to " << name_of(*level)
          << "; this CPU has " << name_of(cpu) << " (unset it to be faster)";
  return warning.str();
}

std::optional<std::string> blas_variables(const char* const* environment) {
  std::string all;
  for (; *environment != nullptr; ++environment)
    if (std::string_view(*environment).starts_with("OPENBLAS_"))
      all += (all.empty() ? "" : ", ") + std::string(*environment);
  if (all.empty()) return std::nullopt;
  return "set, and read by OpenBLAS: " + all;
}

std::optional<std::string> tiles_warning(int threads, int tiles) {
  if (threads <= tiles) return std::nullopt;
  const std::string tiles_text = std::to_string(tiles), threads_text = std::to_string(threads);
  return "warning: the deepest products are cut for " + tiles_text +
         (tiles == 1 ? " core; --tiles " : " cores; --tiles ") + threads_text + " cuts them for " + threads_text +
         " (and gives other bits, as another seed would)";
}

std::optional<std::string> wait_policy_warning(const char* policy) {
  if (policy == nullptr || !same_name(policy, "passive")) return std::nullopt;
  return "warning: OMP_WAIT_POLICY=passive makes every parallel loop wake its threads again (unset it to be faster)";
}

namespace {

// Jiffies of all cores: idle ones, and all.
struct Jiffies {
  double idle = 0, all = 0;
  explicit Jiffies(std::string_view stat) {
    std::istringstream words{std::string(stat.substr(0, stat.find('\n')))};
    std::string name;
    words >> name;
    constexpr int idle_column = 3, waiting_for_disk = 4, steal = 7;  // man 5 proc; later columns are included in these
    double count = 0;
    for (int column = 0; column <= steal && words >> count; ++column) {
      all += count;
      if (column == idle_column || column == waiting_for_disk) idle += count;
    }
  }
};

}  // namespace

double busy_cores(std::string_view before, std::string_view after, int cores) {
  const Jiffies first(before), second(after);
  const double all = second.all - first.all, idle = second.idle - first.idle;
  return all > 0 ? std::clamp(1 - idle / all, 0.0, 1.0) * cores : 0;
}

std::optional<std::string> busy_warning(double busy, int cores) {
  if (busy <= 0.25) return std::nullopt;
  std::ostringstream warning;
  warning << std::fixed << std::setprecision(1) << "warning: other programs keep " << busy << " of " << cores
          << (cores == 1 ? " core" : " cores") << " busy; measured times will be too long";
  return warning.str();
}

void print_busy_warning(std::ostream& out) {
  const auto stat = [] {
    std::ifstream file("/proc/stat");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = stat();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const auto warning = busy_warning(busy_cores(before, stat(), cores), cores)) out << *warning << std::endl;
}

void print_start(std::ostream& out, const RunStart& start) {
  guard_blas();
  const BlasInfo blas = blas_info();
  out << "seed " << start.seed << ", " << threads() << (threads() == 1 ? " thread" : " threads")
      << ", products in at least " << least_tiles() << (least_tiles() == 1 ? " tile, " : " tiles, ")
      << version_of(blas.config) << " (" << blas.threading << "), kernel " << blas.kernel << '\n';
  if (start.parameters > 0) out << "model of " << start.parameters << " parameters\n";
  if (start.expected_seconds > 0) out << "expected time " << duration(start.expected_seconds) << '\n';
  if (const auto warning = kernel_warning(std::getenv("OPENBLAS_CORETYPE"), blas.kernel, cpu_vector_level()))
    out << *warning << '\n';
  for (const auto& line : {blas_variables(environ), tiles_warning(threads(), least_tiles()),
                           wait_policy_warning(std::getenv("OMP_WAIT_POLICY"))})
    if (line) out << *line << '\n';
  out << std::flush;
}

}  // namespace orrery
