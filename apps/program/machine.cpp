// Chapter 9. Asks the CPU, OpenBLAS, the system and the environment for everything that the speed of a run depends on.
#include "apps/program/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "apps/program/findings.h"
#include "apps/program/progress.h"
#include "core/machine/cpu_features.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"

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

// Whether the program was compiled for a feature (core/machine/cpu_features.cpp).
bool compiled_for(std::string_view feature) {
  return std::any_of(cpu_features, cpu_features + cpu_feature_count,
                     [&](const CpuFeature& known) { return known.needed && known.name == feature; });
}

int online_cores() { return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); }

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return (x | 0x20) == (y | 0x20); };  // the bit of small letters in ASCII
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

std::string_view name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512: return "AVX-512";
    case VectorLevel::avx2: return "AVX2";
    case VectorLevel::avx: return "AVX";
    case VectorLevel::baseline: return "128-bit vectors";
  }
  return "?";
}

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

VectorLevel compiled_vector_level() {
  if (compiled_for("AVX512F") && compiled_for("AVX512VL") && compiled_for("AVX512BW") && compiled_for("AVX512DQ"))
    return VectorLevel::avx512;
  if (compiled_for("AVX2") && compiled_for("FMA")) return VectorLevel::avx2;
  return compiled_for("AVX") ? VectorLevel::avx : VectorLevel::baseline;
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
    if (same_word(known.name, kernel)) return known.level;
  return std::nullopt;
}

std::map<std::string, std::string> variables_of(const char* const* environment) {
  std::map<std::string, std::string> variables;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    if (equals != entry.npos) variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

Machine read_machine() {
  const SystemFiles files;
  const int cores = online_cores(), allowed = cores_allowed(files.text("/proc/self/status"));
  const std::vector<std::string> openmp =
      loaded_libraries(files.text("/proc/self/maps"), {"libgomp.", "libomp.", "libomp5", "libiomp5."});
  return {.cpu = cpu_name(),
          .level = cpu_vector_level(),
          .build = {.type = ORRERY_BUILD_TYPE,
                    .optimisation = optimisation_in(ORRERY_OPTIMISATION),
                    .sanitizers = ORRERY_SANITIZERS,
                    .level = compiled_vector_level()},
          .cores = cores,
          .allowed = allowed > 0 ? std::min(allowed, cores) : cores,
          .granted = granted_cores(files),
          .threads = threads(),
          .tiles = least_tiles(),
          .blas = blas_info(),
          .openmp = openmp.empty() ? "" : openmp.front(),
          .environment = variables_of(environ),
          .memory = memory_of(files),
          .waiting_for_cores = share_waited(files.text("/proc/pressure/cpu")),
          .waiting_for_memory = share_waited(files.text("/proc/pressure/memory"))};
}

BusyCores watch_cores(int cores) {
  const SystemFiles files;
  const std::string before = files.text("/proc/stat");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return busy_cores(before, files.text("/proc/stat"), cores);
}

void print_start(std::ostream& out, const RunStart& start) {
  guard_blas();
  const Machine machine = read_machine();
  if (start.seed) out << "seed " << *start.seed << ", ";
  out << machine.threads << (machine.threads == 1 ? " thread" : " threads") << ", products in at least "
      << machine.tiles << (machine.tiles == 1 ? " tile, " : " tiles, ") << described(machine.blas) << '\n';
  if (start.parameters > 0) out << "model of " << start.parameters << " parameters\n";
  if (start.expected_seconds > 0) {
    out << "expected time " << duration(start.expected_seconds);
    const double limit = 60 * start.time_limit;
    if (limit > 0 && limit < start.expected_seconds) out << "; --time-limit stops it after " << duration(limit);
    out << '\n';
  }
  std::vector<Finding> all = findings(machine);
  all.push_back(start.measured ? busy_finding(watch_cores(machine.cores), machine.cores) : waiting_finding(machine));
  for (const Finding& finding : all)
    if (finding.verdict == Verdict::harmful || (start.measured && finding.verdict == Verdict::note))
      out << line_of(finding) << '\n';
  out << std::flush;
}

}  // namespace orrery
