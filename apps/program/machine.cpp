// Chapter 9. The machine, the build and the environment of this run, and the findings, one function for each subject.
#include "apps/program/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/program/progress.h"
#include "apps/program/terminal.h"
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

namespace {

// "1 core", "2 cores"
std::string counted(i64 count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string with_one_decimal(double x) { return numbers("%.1f", x); }
std::string gigabytes(i64 bytes) { return with_one_decimal(static_cast<double>(bytes) / (1 << 30)); }

// The value of a variable; "" if it is not set.
std::string value_in(const Machine& machine, const std::string& name) {
  const auto found = machine.environment.find(name);
  return found == machine.environment.end() ? "" : found->second;
}

Finding cpu_finding(const Machine& machine) {
  std::string text = machine.cpu + ", " + std::string(name_of(machine.level)) + ", " + counted(machine.cores, "core");
  if (machine.allowed < machine.cores) text += ", of which this process may use " + std::to_string(machine.allowed);
  return {Verdict::ok, "cpu", text};
}

Finding build_finding(const Machine& machine) {
  const Build& build = machine.build;
  const std::string subject = "build", compiled(name_of(build.level)),
                    release = "build with: cmake --preset release && cmake --build --preset release";
  if (!build.sanitizers.empty())
    return {Verdict::harmful, subject, "built with the sanitizers " + build.sanitizers + ", for tests only", release};
  if (build.optimisation == "-O0")
    return {Verdict::harmful, subject, build.type + " build without optimisation", release};
  if (build.level < machine.level) {
    const Verdict verdict = build.level < VectorLevel::avx2 ? Verdict::harmful : Verdict::note;
    return {verdict, subject, "built for " + compiled + ", and this CPU has " + std::string(name_of(machine.level)),
            "build on this machine, with -D ORRERY_NATIVE=ON"};
  }
  return {Verdict::ok, subject, build.type + " build, " + build.optimisation + ", for " + compiled};
}

// The variable that keeps OpenMP from using all cores, and whether --threads overrides it; "" if there is none.
struct Limit {
  std::string variable;
  bool weaker_than_option = false;
};
Limit limit_of_threads(const Machine& machine) {
  const std::string now = std::to_string(machine.threads);
  if (value_in(machine, "OMP_THREAD_LIMIT") == now) return {"OMP_THREAD_LIMIT=" + now};
  const std::string asked = value_in(machine, "OMP_NUM_THREADS");  // perhaps a list, one number for each nested level
  if (asked.substr(0, asked.find(',')) == now) return {"OMP_NUM_THREADS=" + asked, true};
  return {};
}

Finding threads_finding(const Machine& machine) {
  const std::string subject = "threads", ours = counted(machine.threads, "thread");
  const auto fewer = [](double cores) {
    return "use --threads " + std::to_string(std::max(1, static_cast<int>(cores)));
  };
  if (machine.granted > 0 && machine.threads > 1 && machine.threads > machine.granted + 0.05) {
    const Verdict verdict = machine.threads >= 2 * machine.granted ? Verdict::harmful : Verdict::note;
    return {verdict, subject,
            ours + ", and a control group grants the time of " + with_one_decimal(machine.granted) +
                " cores: all threads stop when it is used up",
            fewer(machine.granted)};
  }
  if (machine.threads > machine.allowed)
    return {Verdict::note, subject, ours + " take turns on " + counted(machine.allowed, "core"),
            fewer(machine.allowed)};
  if (const Limit limit = limit_of_threads(machine); machine.threads < machine.allowed && !limit.variable.empty()) {
    const Verdict verdict =
        2 * machine.threads <= machine.allowed && !limit.weaker_than_option ? Verdict::harmful : Verdict::note;
    return {verdict, subject,
            limit.variable + " leaves " + std::to_string(machine.allowed - machine.threads) + " of " +
                counted(machine.allowed, "core") + " unused",
            limit.weaker_than_option ? "unset it, or use --threads " + std::to_string(machine.allowed) : "unset it"};
  }
  return {Verdict::ok, subject, ours + " on " + counted(machine.allowed, "core")};
}

// A setting that gives OpenBLAS's kernels as wide as the CPU's vectors.
std::string wide_coretype(VectorLevel level) {
  if (level == VectorLevel::avx512) return "OPENBLAS_CORETYPE=SkylakeX";
  return level == VectorLevel::avx2 ? "OPENBLAS_CORETYPE=Haswell" : "OPENBLAS_CORETYPE=Sandybridge";
}

Finding blas_finding(const Machine& machine) {
  const std::string subject = "blas", variable = "OPENBLAS_CORETYPE";
  std::string kernels = described(machine.blas);
  if (!machine.uses_blas) return {Verdict::ok, subject, kernels + ", which computes no product"};
  if (!has_narrow_vectors(machine.blas, machine.level)) return {Verdict::ok, subject, kernels};
  const bool chosen = same_word(value_in(machine, variable), machine.blas.kernel);
  kernels += ", which uses " + std::string(name_of(*kernel_vector_level(machine.blas.kernel)));
  if (chosen) kernels += ", as " + variable + " says";
  return {Verdict::harmful, subject,
          kernels + ", and this CPU has " + std::string(name_of(machine.level)) + ": products are slow",
          "set " + wide_coretype(machine.level) + (chosen ? ", or unset it" : ", or install a newer one")};
}

Finding openmp_finding(const Machine& machine) {
  const std::string subject = "openmp", policy = value_in(machine, "OMP_WAIT_POLICY"),
                    bind = value_in(machine, "OMP_PROC_BIND"),
                    unless_alone = "unset it unless the machine does nothing else";
  if (same_word(policy, "passive"))
    return {Verdict::note, subject, "OMP_WAIT_POLICY=passive makes every parallel loop wake its threads again",
            "unset it to be faster"};
  if (same_word(policy, "active"))
    return {Verdict::note, subject,
            "OMP_WAIT_POLICY=active keeps waiting threads running: beside another program, a step takes almost twice "
            "as long",
            unless_alone};
  if (!bind.empty() && !same_word(bind, "false"))
    return {Verdict::note, subject,
            "OMP_PROC_BIND=" + bind + " ties threads to cores: a second run gets the same cores", unless_alone};
  return {Verdict::ok, subject, "no setting that costs speed"};
}

Finding memory_finding(const Machine& machine) {
  constexpr i64 little = i64{1} << 30, very_little = i64{1} << 28;
  const SystemMemory& memory = machine.memory;
  const std::string subject = "memory", text = gigabytes(memory.available) + " of " + gigabytes(memory.total) +
                                               " GB available" +
                                               (memory.limited ? " (limited by a control group)" : "");
  if (memory.total == 0) return {Verdict::ok, subject, gigabytes(physical_memory()) + " GB"};
  if (memory.available < very_little)
    return {Verdict::harmful, subject, text + ": a training may be ended by the system", "end other programs"};
  if (memory.available < little)
    return {Verdict::note, subject, text + ": enough for small models only", "end other programs"};
  return {Verdict::ok, subject, text};
}

}  // namespace

std::string line_of(const Finding& finding) {
  return harmless((finding.verdict == Verdict::harmful ? "warning: " : "note: ") + finding.text +
                  (finding.advice.empty() ? "" : "; " + finding.advice));
}

std::vector<Finding> findings(const Machine& machine) {
  return {cpu_finding(machine),  build_finding(machine),  threads_finding(machine),
          blas_finding(machine), openmp_finding(machine), memory_finding(machine)};
}

Finding busy_finding(const BusyCores& busy, int cores) {
  constexpr double tolerated = 0.25;
  const std::string subject = "load", of = " of " + counted(cores, "core"), then = ": measured times will be too long";
  const auto verdict = [&](double lost) { return 2 * lost >= cores ? Verdict::harmful : Verdict::note; };
  if (busy.stolen > tolerated)
    return {verdict(busy.stolen), subject,
            "the host of this virtual machine takes away " + with_one_decimal(busy.stolen) + of + then,
            "try another time, or another machine"};
  const std::string text = "other programs keep " + with_one_decimal(busy.busy) + of + " busy";
  if (busy.busy <= tolerated) return {Verdict::ok, subject, text};
  return {verdict(busy.busy), subject, text + then, "wait until they end (top shows them)"};
}

std::string described(const BlasInfo& blas) {
  std::istringstream words(blas.config);  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  std::string library, version;
  words >> library >> version;
  return library + " " + version + " (" + blas.threading + "), kernel " + blas.kernel;
}

}  // namespace orrery
