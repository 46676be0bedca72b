// Chapter 9. The findings, one function for each subject.
#include "apps/program/findings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "apps/program/columns.h"

namespace orrery {
namespace {

const std::string wait_for_others = "wait until they end (top shows them)";

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

// "A=1, B=2": the variables whose names begin with one of `beginnings`.
std::string variables_with(const Machine& machine, const std::vector<std::string>& beginnings) {
  std::string all;
  for (const auto& [name, value] : machine.environment) {
    const bool matches = std::any_of(beginnings.begin(), beginnings.end(),
                                     [&name = name](const std::string& begin) { return name.starts_with(begin); });
    if (matches) all += (all.empty() ? "" : ", ") + name + "=" + value;
  }
  return all;
}

Finding cpu_finding(const Machine& machine) {
  std::string text = machine.cpu + ", " + std::string(name_of(machine.level)) + ", " + counted(machine.cores, "core");
  if (machine.allowed < machine.cores) text += ", of which this process may use " + std::to_string(machine.allowed);
  return {Verdict::ok, "cpu", text};
}

Finding build_finding(const Machine& machine) {
  const Build& build = machine.build;
  const std::string subject = "build", level = build.optimisation, compiled(name_of(build.level)),
                    release = "build with: cmake --preset release && cmake --build --preset release";
  if (!build.sanitizers.empty())
    return {Verdict::harmful, subject, "built with the sanitizers " + build.sanitizers + ", for tests only", release};
  if (level == "-O0") return {Verdict::harmful, subject, build.type + " build without optimisation", release};
  if (build.level < machine.level) {
    const Verdict verdict = build.level < VectorLevel::avx2 ? Verdict::harmful : Verdict::note;
    return {verdict, subject, "built for " + compiled + ", and this CPU has " + std::string(name_of(machine.level)),
            "build on this machine, with -D ORRERY_NATIVE=ON"};
  }
  const std::string text = build.type + " build, " + level + ", for " + compiled;
  if (level == "-O1") return {Verdict::note, subject, text + ": slower than a release", release};
  return {Verdict::ok, subject, text};
}

// The variable that keeps OpenMP from using all cores, and whether --threads overrides it; "" if there is none.
struct Limit {
  std::string variable;
  bool weaker_than_option = false;
};
Limit limit_of_threads(const Machine& machine) {
  const std::string now = std::to_string(machine.threads);
  if (value_in(machine, "OMP_THREAD_LIMIT") == now) return {"OMP_THREAD_LIMIT=" + now};
  if (value_in(machine, "OMP_MAX_ACTIVE_LEVELS") == "0") return {"OMP_MAX_ACTIVE_LEVELS=0"};
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

// In the deepest products, those of BLAS, there is one tile for each thread at most.
Finding tiles_finding(const Machine& machine) {
  if (machine.threads <= machine.tiles)
    return {Verdict::ok, "tiles", "products are cut for " + counted(machine.tiles, "core") + " or more"};
  const std::string needed = std::to_string(machine.threads);
  return {Verdict::note, "tiles", "the deepest products are cut for " + counted(machine.tiles, "core"),
          "--tiles " + needed + " cuts them for " + needed + " (and gives other bits, as another seed would)"};
}

// A setting that gives OpenBLAS's kernels as wide as the CPU's vectors.
std::string wide_coretype(VectorLevel level) {
  if (level == VectorLevel::avx512) return "OPENBLAS_CORETYPE=SkylakeX";
  return level == VectorLevel::avx2 ? "OPENBLAS_CORETYPE=Haswell" : "OPENBLAS_CORETYPE=Sandybridge";
}

std::vector<Finding> blas_findings(const Machine& machine) {
  const std::string subject = "blas", variable = "OPENBLAS_CORETYPE", coretype = value_in(machine, variable);
  const bool chosen = same_word(coretype, machine.blas.kernel);
  if (machine.blas.threading == "none" && machine.threads > 1)
    return {{Verdict::harmful, subject,
             described(machine.blas) + ": without threads it gives wrong products to several",
             "install libopenblas0-openmp, or use --threads 1"}};
  std::string kernels = described(machine.blas);
  if (has_narrow_vectors(machine.blas, machine.level))
    kernels += ", which uses " + std::string(name_of(*kernel_vector_level(machine.blas.kernel)));
  if (chosen) kernels += ", as " + variable + " says";
  std::vector<Finding> found;
  const bool unused = has_narrow_vectors(machine.blas, machine.build.level);
  if (unused || (chosen && has_narrow_vectors(machine.blas, machine.level)))
    found.push_back({Verdict::harmful, subject,
                     kernels + ", and this CPU has " + std::string(name_of(machine.level)) +
                         (unused ? ": no product uses it, and large ones are slower" : ": large products are slow"),
                     "set " + wide_coretype(machine.level) + (chosen ? ", or unset it" : ", or install a newer one")});
  Machine others = machine;  // a kernel that was chosen is named above
  if (chosen) others.environment.erase(variable);
  if (const std::string set = variables_with(others, {"OPENBLAS_"}); !set.empty())
    found.push_back({Verdict::note, subject, "OpenBLAS reads " + set + ": speed and bits may change",
                     "unset those that you do not need"});
  if (found.empty()) found.push_back({Verdict::ok, subject, kernels});
  return found;
}

std::vector<Finding> openmp_findings(const Machine& machine) {
  const std::string subject = "openmp", policy = value_in(machine, "OMP_WAIT_POLICY"),
                    bind = value_in(machine, "OMP_PROC_BIND"),
                    ties =
                        variables_with(machine, {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"});
  std::vector<Finding> found;
  if (same_word(policy, "passive"))
    found.push_back({Verdict::note, subject, "OMP_WAIT_POLICY=passive makes every parallel loop wake its threads again",
                     "unset it to be faster"});
  if (same_word(policy, "active"))
    found.push_back(
        {Verdict::note, subject,
         "OMP_WAIT_POLICY=active keeps waiting threads running: beside another program, a step takes almost "
         "twice as long",
         "unset it unless the machine does nothing else"});
  if (!ties.empty() && !same_word(bind, "false"))
    found.push_back({Verdict::note, subject, ties + " ties threads to cores: a second run gets the same cores",
                     "unset it unless the machine does nothing else"});
  if (!found.empty()) return found;
  const std::string set = variables_with(machine, {"OMP_", "GOMP_", "KMP_"});
  return {{Verdict::ok, subject,
           (machine.openmp.empty() ? "built in" : machine.openmp) + (set.empty() ? "" : "; set: " + set)}};
}

Finding memory_finding(const Machine& machine) {
  constexpr i64 little = i64{1} << 30, very_little = i64{1} << 28;
  const SystemMemory& memory = machine.memory;
  const std::string subject = "memory", text = gigabytes(memory.available) + " of " + gigabytes(memory.total) +
                                               " GB available" +
                                               (memory.limited ? " (limited by a control group)" : "");
  if (memory.total == 0) return {Verdict::ok, subject, gigabytes(physical_memory()) + " GB"};
  constexpr double swapping = 0.1;
  if (memory.available < very_little)
    return {Verdict::harmful, subject, text + ": a training may be ended by the system", "end other programs"};
  if (machine.waiting_for_memory > swapping)
    return {Verdict::harmful, subject,
            text + "; programs waited for memory for " + std::to_string(std::lround(100 * machine.waiting_for_memory)) +
                " % of the last 10 s",
            "end other programs"};
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
  std::vector<Finding> all{cpu_finding(machine), build_finding(machine), threads_finding(machine),
                           tiles_finding(machine)};
  for (const auto& list : {blas_findings(machine), openmp_findings(machine)})
    all.insert(all.end(), list.begin(), list.end());
  all.push_back(memory_finding(machine));
  return all;
}

Finding waiting_finding(const Machine& machine) {
  constexpr double tolerated = 0.3;
  const std::string subject = "load", share = std::to_string(std::lround(100 * machine.waiting_for_cores));
  if (machine.waiting_for_cores <= tolerated) return {Verdict::ok, subject, "cores were free in the last 10 s"};
  return {Verdict::note, subject, "programs waited for a core for " + share + " % of the last 10 s: times will vary",
          wait_for_others};
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
  return {verdict(busy.busy), subject, text + then, wait_for_others};
}

std::string described(const BlasInfo& blas) {
  std::istringstream words(blas.config);  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  std::string library, version;
  words >> library >> version;
  return library + " " + version + " (" + blas.threading + "), kernel " + blas.kernel;
}

std::string optimisation_in(const std::string& options) {
  const std::string last = options.substr(options.rfind(';') + 1);
  if (last.empty()) return "-O0";
  return last == "-O" ? "-O1" : last;
}

}  // namespace orrery
