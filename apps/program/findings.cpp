// Chapter 9. The findings, one function for each subject.
#include "apps/program/findings.h"

#include <algorithm>
#include <sstream>

#include "apps/program/columns.h"

namespace orrery {
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
