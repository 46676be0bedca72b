// Chapter 9. Tests of the findings: machines, builds and environments that are right, and others.
#include "apps/program/findings.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace orrery;

namespace {

constexpr i64 half_gigabyte = i64{1} << 29;

// Nothing is wrong with it.
Machine good_machine() {
  return {.cpu = "AMD EPYC 9B45",
          .level = VectorLevel::avx512,
          .build = {.type = "Release", .optimisation = "-O3", .sanitizers = "", .level = VectorLevel::avx512},
          .cores = 2,
          .allowed = 2,
          .granted = 0,
          .threads = 2,
          .tiles = 2,
          .blas = {.kernel = "SkylakeX", .config = "OpenBLAS 0.3.21 DYNAMIC_ARCH", .threading = "OpenMP"},
          .environment = {},
          .memory = {.total = 32 * half_gigabyte, .available = 16 * half_gigabyte, .limited = false}};
}

// The line of the first finding of a subject that is not ok; "" if there is none.
std::string problem_of(const Machine& machine, const std::string& subject) {
  const std::vector<Finding> all = findings(machine);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& finding) {
    return finding.subject == subject && finding.verdict != Verdict::ok;
  });
  return found == all.end() ? "" : line_of(*found);
}

// The same for a machine with one variable more in its environment.
std::string problem_with(const std::string& variable, const std::string& value, const std::string& subject) {
  Machine machine = good_machine();
  machine.environment[variable] = value;
  return problem_of(machine, subject);
}

}  // namespace

TEST_CASE("a good machine has one finding for each subject, and nothing to do") {
  std::vector<std::string> subjects, texts;
  for (const Finding& finding : findings(good_machine())) {
    CHECK(finding.verdict == Verdict::ok);
    CHECK(finding.advice == "");
    subjects.push_back(finding.subject);
    texts.push_back(finding.text);
  }
  CHECK(subjects == std::vector<std::string>{"cpu", "build", "threads", "tiles", "blas", "openmp", "memory"});
  CHECK(texts == std::vector<std::string>{"AMD EPYC 9B45, AVX-512, 2 cores", "Release build, -O3, for AVX-512",
                                          "2 threads on 2 cores", "products are cut for 2 cores or more",
                                          "OpenBLAS 0.3.21 (OpenMP), kernel SkylakeX", "no setting that costs speed",
                                          "8.0 of 16.0 GB available"});
}

TEST_CASE("a line says how bad it is and what to do, and commands no terminal") {
  CHECK(line_of({Verdict::note, "a", "it is so", "change it"}) == "note: it is so; change it");
  CHECK(line_of({Verdict::harmful, "a", "it is so\n\x1B[31m"}) == "warning: it is so\\n?[31m");
}

TEST_CASE("builds for tests, without optimisation, or for lesser CPUs are slow") {
  Machine machine = good_machine();
  machine.build.sanitizers = "address,undefined";
  CHECK(problem_of(machine, "build").starts_with("warning: built with the sanitizers address,undefined, "));
  machine = good_machine();
  machine.build.optimisation = "-O0";
  machine.build.type = "Debug";
  CHECK(problem_of(machine, "build").starts_with("warning: Debug build without optimisation; build with: cmake "));
  machine = good_machine();
  machine.build.level = VectorLevel::avx2;
  CHECK(problem_of(machine, "build") ==
        "note: built for AVX2, and this CPU has AVX-512; build on this machine, with -D ORRERY_NATIVE=ON");
  machine.build.level = VectorLevel::baseline;
  CHECK(problem_of(machine, "build").starts_with("warning: built for 128-bit vectors, "));
  machine.level = VectorLevel::baseline;
  machine.blas.kernel = "NeoverseN1";
  CHECK(problem_of(machine, "build") == "");
  CHECK(problem_of(machine, "blas") == "");
}

TEST_CASE("threads fit the cores that they may use") {
  Machine machine = good_machine();
  machine.threads = 8;
  CHECK(problem_of(machine, "threads") == "note: 8 threads take turns on 2 cores; use --threads 2");
  machine.allowed = 1;
  CHECK(problem_of(machine, "threads") == "note: 8 threads take turns on 1 core; use --threads 1");
  CHECK(findings(machine)[0].text == "AMD EPYC 9B45, AVX-512, 2 cores, of which this process may use 1");
  machine = good_machine();
  machine.granted = 1.5;
  CHECK(problem_of(machine, "threads") ==
        "note: 2 threads, and a control group grants the time of 1.5 cores: all threads stop when it is used up; use "
        "--threads 1");
  machine.granted = 0.5;
  CHECK(problem_of(machine, "threads").starts_with("warning: 2 threads, and a control group grants "));
  machine.granted = 2;
  CHECK(problem_of(machine, "threads") == "");
  machine.granted = 0.5;
  machine.threads = 1;  // fewer there cannot be
  CHECK(problem_of(machine, "threads") == "");
}

TEST_CASE("a variable that leaves cores unused is named, a choice of --threads is not") {
  Machine machine = good_machine();
  machine.threads = 1;
  CHECK(problem_of(machine, "threads") == "");
  machine.environment["OMP_NUM_THREADS"] = "1,2";
  CHECK(problem_of(machine, "threads") ==
        "note: OMP_NUM_THREADS=1,2 leaves 1 of 2 cores unused; unset it, or use --threads 2");
  machine.environment = {{"OMP_NUM_THREADS", "4"}};
  CHECK(problem_of(machine, "threads") == "");
  machine.environment["OMP_THREAD_LIMIT"] = "1";
  CHECK(problem_of(machine, "threads") == "warning: OMP_THREAD_LIMIT=1 leaves 1 of 2 cores unused; unset it");
  machine.allowed = 1;
  CHECK(problem_of(machine, "threads") == "");
}

TEST_CASE("more threads than tiles leave some without work") {
  Machine machine = good_machine();
  machine.threads = machine.cores = machine.allowed = 8;
  CHECK(problem_of(machine, "tiles") ==
        "note: the deepest products are cut for 2 cores; --tiles 8 cuts them for 8 (and gives other bits, as another "
        "seed would)");
  machine.tiles = 8;
  CHECK(problem_of(machine, "tiles") == "");
}

TEST_CASE("an OpenBLAS with narrower vectors than the build is harmful, whether it was told so or chose by itself") {
  Machine machine = good_machine();
  machine.blas.kernel = "Prescott";
  CHECK(problem_of(machine, "blas") ==
        "warning: OpenBLAS 0.3.21 (OpenMP), kernel Prescott, which uses 128-bit vectors, and this CPU has AVX-512: no "
        "product uses it, and large ones are slower; set OPENBLAS_CORETYPE=SkylakeX, or install a newer one");
  machine.environment["OPENBLAS_CORETYPE"] = "prescott";
  CHECK(problem_of(machine, "blas").ends_with("; set OPENBLAS_CORETYPE=SkylakeX, or unset it"));
  machine.level = machine.build.level = VectorLevel::avx2;
  CHECK(problem_of(machine, "blas").ends_with("; set OPENBLAS_CORETYPE=Haswell, or unset it"));
  machine.build.level = VectorLevel::baseline;  // a build that is no wider uses it
  CHECK(problem_of(machine, "blas").find("AVX2: large products are slow; set ") != std::string::npos);
  machine.environment.erase("OPENBLAS_CORETYPE");
  CHECK(problem_of(machine, "blas") == "");
}

TEST_CASE("a kernel that was chosen as wide as the CPU is nobody's mistake") {
  Machine machine = good_machine();
  machine.environment["OPENBLAS_CORETYPE"] = "skylakex";
  CHECK(problem_of(machine, "blas") == "");
  CHECK(findings(machine)[4].text == "OpenBLAS 0.3.21 (OpenMP), kernel SkylakeX, as OPENBLAS_CORETYPE says");
  machine.environment["OPENBLAS_CORETYPE"] = "Zeppelin";
  machine.blas.kernel = "Zeppelin";  // one that is newer than our table
  CHECK(problem_of(machine, "blas") == "");
}

TEST_CASE("variables of OpenMP that cost speed are worth a note") {
  CHECK(problem_with("OMP_WAIT_POLICY", "PASSIVE", "openmp").starts_with("note: OMP_WAIT_POLICY=passive makes "));
  CHECK(problem_with("OMP_WAIT_POLICY", "active", "openmp").starts_with("note: OMP_WAIT_POLICY=active keeps "));
  CHECK(problem_with("OMP_PROC_BIND", "close", "openmp").starts_with("note: OMP_PROC_BIND=close ties threads "));
  CHECK(problem_with("OMP_PROC_BIND", "FALSE", "openmp") == "");
}

TEST_CASE("little memory is said") {
  Machine machine = good_machine();
  machine.memory.available = half_gigabyte;
  CHECK(problem_of(machine, "memory").starts_with("note: 0.5 of 16.0 GB available: enough for small models only"));
  machine.memory.available = half_gigabyte / 4;
  CHECK(problem_of(machine, "memory").starts_with("warning: 0.1 of 16.0 GB available: a training may be ended"));
  machine = good_machine();
  machine.memory.limited = true;
  CHECK(findings(machine)[6].text == "8.0 of 16.0 GB available (limited by a control group)");
  machine.memory = {};  // the system tells nothing
  CHECK(problem_of(machine, "memory") == "");
}

TEST_CASE("a busy machine is worth a line, a quiet one is not") {
  CHECK(busy_finding({.busy = 0.2, .stolen = 0}, 2).verdict == Verdict::ok);
  CHECK(
      line_of(busy_finding({.busy = 0.8, .stolen = 0}, 2)) ==
      "note: other programs keep 0.8 of 2 cores busy: measured times will be too long; wait until they end (top shows "
      "them)");
  CHECK(busy_finding({.busy = 1, .stolen = 0}, 2).verdict == Verdict::harmful);
  CHECK(
      busy_finding({.busy = 1, .stolen = 0.5}, 4).text.starts_with("the host of this virtual machine takes away 0.5"));
}
