// Chapter 9. Asks the CPU, OpenBLAS, the system and the environment for everything that the speed of a run depends on.
#include "apps/program/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "apps/program/findings.h"
#include "apps/program/progress.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"
#include "core/products/precision.h"
#include "core/tensor.h"

namespace orrery {
namespace {

// The one that takes effect among options separated by semicolons; "-O0" if there is none.
std::string last_option(const std::string& options) {
  return options.empty() ? "-O0" : options.substr(options.rfind(';') + 1);
}

int online_cores() { return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); }

std::map<std::string, std::string> known_variables() {
  std::map<std::string, std::string> known;
  for (const char* name :
       {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE"})
    if (const char* value = std::getenv(name)) known[name] = value;
  return known;
}

}  // namespace

i64 physical_memory() { return static_cast<i64>(sysconf(_SC_PHYS_PAGES)) * static_cast<i64>(sysconf(_SC_PAGESIZE)); }

void limit_tensors(i64 megabytes) {
  constexpr i64 megabyte = 1 << 20;
  const SystemMemory memory = memory_of(SystemFiles());
  // A tenth is left for texts and threads, and because the system only estimates what is available.
  i64 limit = memory.available / 10 * 9;
  if (memory.total > 0) limit = std::max(limit, megabyte);  // 0 would mean that there is no limit
  limit_memory(megabytes > 0 ? megabytes * megabyte : limit);
}

// Allocated and given back: memory that nothing is written to costs nothing.
void check_parameters_fit(const std::string& program, i64 parameters) {
  within(program + ": a model of " + std::to_string(parameters) + " parameters", [&] { Tensor::empty({parameters}); });
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

Machine read_machine() {
  const SystemFiles files;
  const int cores = online_cores(), allowed = cores_allowed(files.text("/proc/self/status"));
  return {.cpu = cpu_name(),
          .level = cpu_vector_level(),
          .build = {.type = ORRERY_BUILD_TYPE,
                    .optimisation = last_option(ORRERY_OPTIMISATION),
                    .sanitizers = ORRERY_SANITIZERS,
                    .level = compiled_vector_level()},
          .cores = cores,
          .allowed = allowed > 0 ? std::min(allowed, cores) : cores,
          .granted = granted_cores(files),
          .threads = threads(),
          .uses_blas = uses_blas(),
          .uses_bf16 = uses_bf16(),
          .blas = blas_info(),
          .environment = known_variables(),
          .memory = memory_of(files)};
}

BusyCores watch_cores(int cores) {
  const SystemFiles files;
  const std::string before = files.text("/proc/stat");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return busy_cores(before, files.text("/proc/stat"), cores);
}

void print_start(std::ostream& out, const RunStart& start) {
  if (uses_blas()) guard_blas();
  const Machine machine = read_machine();
  if (start.seed) out << "seed " << *start.seed << ", ";
  out << machine.threads << (machine.threads == 1 ? " thread" : " threads") << ", products by "
      << (machine.uses_blas ? described(machine.blas) : "the library")
      << (machine.uses_bf16 ? " in bf16, by " + bf16_arithmetic() : "") << '\n';
  if (start.parameters > 0) out << "model of " << start.parameters << " parameters\n";
  if (start.expected_seconds > 0) {
    out << "expected time " << duration(start.expected_seconds);
    const double limit = 60 * start.time_limit;
    if (limit > 0 && limit < start.expected_seconds) out << "; --time-limit stops it after " << duration(limit);
    out << '\n';
  }
  std::vector<Finding> all = findings(machine);
  if (start.measured) all.push_back(busy_finding(watch_cores(machine.cores), machine.cores));
  for (const Finding& finding : all)
    if (finding.verdict == Verdict::harmful || (start.measured && finding.verdict == Verdict::note))
      out << line_of(finding) << '\n';
  out << std::flush;
}

}  // namespace orrery
