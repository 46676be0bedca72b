// Chapter 9. Tests of what is read from the system's files: given texts, and folders that stand for whole systems.
#include "apps/program/system.h"

#include <doctest/doctest.h>

#include "tests/apps/system_folder.h"

using namespace orrery;

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
