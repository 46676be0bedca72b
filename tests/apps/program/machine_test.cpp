// Chapter 9. Tests of what a run knows of the machine: what is read from the system's files, given as texts and
// folders, and what is found right or wrong.
#include "apps/program/machine.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <sstream>

#include "core/machine/parallel.h"
#include "core/products/precision.h"
#include "tests/apps/system_folder.h"

using namespace orrery;

TEST_CASE("kernels of OpenBLAS are known by their vectors, whatever their spelling") {
  CHECK(kernel_vector_level("Haswell") == VectorLevel::avx2);
  CHECK(kernel_vector_level("sandybridge") == VectorLevel::avx);
  CHECK(kernel_vector_level("SKYLAKEX") == VectorLevel::avx512);
  CHECK(kernel_vector_level("Prescott") == VectorLevel::baseline);
  CHECK_FALSE(kernel_vector_level("neoversen1"));
  CHECK(same_word("PASSIVE", "passive"));
  CHECK_FALSE(same_word("passive", "passiv"));
}

TEST_CASE("what is read of this machine is plausible") {
  const Machine machine = read_machine();
  CHECK_FALSE(machine.cpu.empty());
  CHECK(machine.build.level <= machine.level);  // otherwise this program could not run
  CHECK(machine.build.optimisation.starts_with("-O"));
  CHECK(machine.cores >= 1);
  CHECK(machine.allowed >= 1);
  CHECK(machine.allowed <= machine.cores);
  CHECK(machine.granted >= 0);
  CHECK(machine.threads == threads());
  CHECK(machine.blas.kernel == blas_info().kernel);
  CHECK(machine.memory.total <= physical_memory());
  CHECK(machine.memory.available <= machine.memory.total);
  CHECK(watch_cores(machine.cores).busy <= machine.cores);
}

TEST_CASE("the first lines name seed, products, model and time") {
  std::ostringstream out;
  print_start(out, {.seed = 42, .parameters = 128013, .expected_seconds = 75});
  CHECK(out.str().starts_with("seed 42, "));
  CHECK(out.str().find(", products by the library\n") != std::string::npos);
  std::ostringstream with_blas;
  use_blas(true);
  print_start(with_blas, {});
  use_blas(false);
  std::ostringstream with_bf16;
  use_bf16(true);
  print_start(with_bf16, {});
  use_bf16(false);
  CHECK(with_bf16.str().find(", products by the library in bf16, by " + bf16_arithmetic() + "\n") != std::string::npos);
  CHECK(with_blas.str().find(", products by OpenBLAS ") != std::string::npos);
  CHECK(with_blas.str().find(", kernel " + blas_info().kernel + "\n") != std::string::npos);
  CHECK(out.str().find("model of 128013 parameters\n") != std::string::npos);
  CHECK(out.str().find("expected time 1 min 15 s\n") != std::string::npos);
  const auto time_with_limit = [](double minutes) {
    std::ostringstream text;
    print_start(text, {.expected_seconds = 75, .time_limit = minutes});
    const size_t begin = text.str().find("expected");
    return text.str().substr(begin, text.str().find('\n', begin) - begin);
  };
  CHECK(time_with_limit(0.5) == "expected time 1 min 15 s; --time-limit stops it after 30 s");
  CHECK(time_with_limit(2) == "expected time 1 min 15 s");
  CHECK(time_with_limit(0) == "expected time 1 min 15 s");
}

namespace {

const std::string meminfo_of_16_gb =
    "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:    8388608 kB\n";
constexpr i64 gigabyte = i64{1} << 30;

}  // namespace

TEST_CASE("a field of /proc/meminfo is found by its whole name") {
  const std::string text = "MemTotal:       24684084 kB\nSwapTotal:             0 kB\n";
  CHECK(bytes_in_meminfo(text, "MemTotal") == i64{24684084} * 1024);
  CHECK(bytes_in_meminfo(text, "SwapTotal") == 0);
  CHECK(bytes_in_meminfo(text, "Mem") == -1);
  CHECK(bytes_in_meminfo("", "MemTotal") == -1);
  CHECK(bytes_in_meminfo("MemTotal: x kB", "MemTotal") == -1);
}

TEST_CASE("allowed cores are counted in ranges and single numbers") {
  CHECK(cores_allowed("Name:\tx\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n") == 2);
  CHECK(cores_allowed("Cpus_allowed_list:\t0,2,8-11\n") == 6);
  CHECK(cores_allowed("Cpus_allowed_list:\t5") == 1);
  CHECK(cores_allowed("Cpus_allowed:\t3\n") == 0);
  CHECK(cores_allowed("Cpus_allowed_list:\tx-y,3-1\n") == 0);
  CHECK(cores_allowed("") == 0);
}

TEST_CASE("the folders of control groups, of both versions, from the inside out") {
  using Folders = std::vector<std::string>;
  CHECK(group_folders("0::/a/b\n", "cpu") == Folders{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"});
  CHECK(group_folders("0::/\n", "memory") == Folders{"/sys/fs/cgroup"});
  CHECK(group_folders("4:memory:/x\n1:cpu:/\n0::/\n", "memory") ==
        Folders{"/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"});
  CHECK(group_folders("2:cpu,cpuacct:/x\n", "cpu") == Folders{"/sys/fs/cgroup/cpu/x", "/sys/fs/cgroup/cpu"});
  CHECK(group_folders("2:cpuset:/x\n", "cpu").empty());
  CHECK(group_folders("0\n::\nnonsense", "cpu").empty());
  CHECK(group_folders("", "cpu").empty());
}

TEST_CASE("the least quota of all groups around a process counts") {
  const SystemFolder folder;
  const SystemFiles files = folder.files();
  CHECK(granted_cores(files) == 0);
  folder.add("/proc/self/cgroup", "0::/a/b\n");
  CHECK(granted_cores(files) == 0);
  folder.add("/sys/fs/cgroup/cpu.max", "max 100000\n");
  CHECK(granted_cores(files) == 0);
  folder.add("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(granted_cores(files) == 1.5);
  folder.add("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  CHECK(granted_cores(files) == 1.5);
  folder.add("/sys/fs/cgroup/a/cpu.max", "nonsense");
  CHECK(granted_cores(files) == 4);
}

TEST_CASE("version 1 of control groups has two files for it, and -1 for no limit") {
  const SystemFolder folder;
  const SystemFiles files = folder.files();
  folder.add("/proc/self/cgroup", "2:cpu,cpuacct:/x\n");
  folder.add("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  folder.add("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  CHECK(granted_cores(files) == 0);
  folder.add("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n");
  CHECK(granted_cores(files) == 0.5);
}

TEST_CASE("memory is the machine's, or what a group leaves") {
  const SystemFolder folder;
  const SystemFiles files = folder.files();
  CHECK(memory_of(files).total == 0);
  folder.add("/proc/meminfo", meminfo_of_16_gb);
  CHECK(memory_of(files).total == 16 * gigabyte);
  CHECK(memory_of(files).available == 8 * gigabyte);
  folder.add("/proc/self/cgroup", "0::/a\n");
  folder.add("/sys/fs/cgroup/a/memory.max", "max\n");
  CHECK_FALSE(memory_of(files).limited);
  folder.add("/sys/fs/cgroup/a/memory.max", std::to_string(4 * gigabyte) + "\n");
  folder.add("/sys/fs/cgroup/a/memory.current", std::to_string(3 * gigabyte) + "\n");
  folder.add("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file " + std::to_string(gigabyte) + "\n");
  const SystemMemory memory = memory_of(files);
  CHECK(memory.limited);
  CHECK(memory.total == 4 * gigabyte);
  CHECK(memory.available == 2 * gigabyte);  // a gigabyte is unused, and one holds parts of files
}

TEST_CASE("version 1 states a number beyond all memory where there is no limit") {
  const SystemFolder folder;
  const SystemFiles files = folder.files();
  folder.add("/proc/meminfo", meminfo_of_16_gb);
  folder.add("/proc/self/cgroup", "4:memory:/\n");
  folder.add("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(memory_of(files).limited);
  folder.add("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(gigabyte));
  folder.add("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(2 * gigabyte));
  CHECK(memory_of(files).total == gigabyte);
  CHECK(memory_of(files).available == 0);
}

TEST_CASE("busy and stolen cores are counted from jiffies") {
  const std::string before = "cpu  1000 20 300 5000 80 0 10 0 0 0\ncpu0 1 2 3\n";
  CHECK(busy_cores(before, "cpu  1015 20 305 5018 82 0 10 0 0 0\n", 2).busy == doctest::Approx(1));  // 20 of 40 idle
  CHECK(busy_cores(before, "cpu  1000 20 300 5040 80 0 10 0 0 0\n", 2).busy == 0);
  const BusyCores stolen = busy_cores(before, "cpu  1000 20 300 5010 80 0 10 30 0 0\n", 2);
  CHECK(stolen.stolen == doctest::Approx(1.5));
  CHECK(stolen.busy == doctest::Approx(1.5));
  CHECK(busy_cores(before, before, 2).busy == 0);
  CHECK(busy_cores("", "", 2).busy == 0);
}

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
          .uses_blas = true,
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

}  // namespace

TEST_CASE("a good machine has one finding for each subject, and nothing to do") {
  std::vector<std::string> subjects, texts;
  for (const Finding& finding : findings(good_machine())) {
    CHECK(finding.verdict == Verdict::ok);
    CHECK(finding.advice == "");
    subjects.push_back(finding.subject);
    texts.push_back(finding.text);
  }
  CHECK(subjects == std::vector<std::string>{"cpu", "build", "threads", "blas", "openmp", "memory"});
  CHECK(texts == std::vector<std::string>{"AMD EPYC 9B45, AVX-512, 2 cores", "Release build, -O3, for AVX-512",
                                          "2 threads on 2 cores", "OpenBLAS 0.3.21 (OpenMP), kernel SkylakeX",
                                          "no setting that costs speed", "8.0 of 16.0 GB available"});
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

TEST_CASE("an OpenBLAS with narrower vectors than the CPU is harmful if products use it, told so or by itself") {
  Machine machine = good_machine();
  machine.blas.kernel = "Prescott";
  machine.uses_blas = false;
  CHECK(problem_of(machine, "blas") == "");
  machine.uses_blas = true;
  CHECK(problem_of(machine, "blas") ==
        "warning: OpenBLAS 0.3.21 (OpenMP), kernel Prescott, which uses 128-bit vectors, and this CPU has AVX-512: "
        "products are slow; set OPENBLAS_CORETYPE=SkylakeX, or install a newer one");
  machine.environment["OPENBLAS_CORETYPE"] = "prescott";
  CHECK(problem_of(machine, "blas").ends_with("; set OPENBLAS_CORETYPE=SkylakeX, or unset it"));
  machine.level = VectorLevel::avx2;
  CHECK(problem_of(machine, "blas").ends_with("; set OPENBLAS_CORETYPE=Haswell, or unset it"));
}

TEST_CASE("little memory is said") {
  Machine machine = good_machine();
  machine.memory.available = half_gigabyte;
  CHECK(problem_of(machine, "memory").starts_with("note: 0.5 of 16.0 GB available: enough for small models only"));
  machine.memory.available = half_gigabyte / 4;
  CHECK(problem_of(machine, "memory").starts_with("warning: 0.1 of 16.0 GB available: a training may be ended"));
  machine = good_machine();
  machine.memory.limited = true;
  CHECK(findings(machine)[5].text == "8.0 of 16.0 GB available (limited by a control group)");
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
