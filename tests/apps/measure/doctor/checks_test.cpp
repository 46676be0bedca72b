// Chapter 9. Tests of the doctor's own checks: disk, power, speed.
#include "apps/measure/doctor/checks.h"

#include <doctest/doctest.h>

#include "tests/apps/system_folder.h"

using namespace orrery;

namespace {

constexpr i64 megabyte = i64{1} << 20;

}  // namespace

TEST_CASE("a disk has room for models, or not") {
  CHECK(disk_finding({.bytes = 50000 * megabyte, .writable = true}).verdict == Verdict::ok);
  CHECK(disk_finding({.bytes = 50000 * megabyte, .writable = true}).text == "48.8 GB free in this folder");
  CHECK(disk_finding({.bytes = 50000 * megabyte, .writable = false}).verdict == Verdict::note);
  CHECK(disk_finding({.bytes = 1000 * megabyte, .writable = true}).verdict == Verdict::note);
  CHECK(disk_finding({.bytes = 10 * megabyte, .writable = true}).verdict == Verdict::harmful);
  const TemporaryFolder folder;
  CHECK(free_space_of(folder.path().string()).writable);
  CHECK(free_space_of(folder.path().string()).bytes > 0);
  CHECK(free_space_of(folder / "nowhere").bytes == -1);
  CHECK(disk_finding({.bytes = -1, .writable = true}).verdict == Verdict::ok);
  CHECK_FALSE(free_space_of(folder / "nowhere").writable);
}

TEST_CASE("a battery, a low limit of the clock and a saving governor cost speed") {
  const SystemFolder folder;
  const SystemFiles files = folder.files();
  CHECK(power_finding(files).verdict == Verdict::ok);  // the system tells nothing
  const std::string frequency = "/sys/devices/system/cpu/cpu0/cpufreq/", power = "/sys/class/power_supply/";
  folder.add(frequency + "scaling_max_freq", "3000000\n");
  folder.add(frequency + "cpuinfo_max_freq", "3000000\n");
  folder.add(frequency + "scaling_governor", "powersave\n");
  folder.add(frequency + "scaling_driver", "intel_pstate\n");
  CHECK(power_finding(files).text == "clock up to 3.0 of 3.0 GHz");
  folder.add(frequency + "scaling_driver", "acpi-cpufreq\n");
  CHECK(power_finding(files).text == "the governor powersave keeps the clock low");
  folder.add(frequency + "scaling_max_freq", "2000000\n");
  CHECK(power_finding(files).verdict == Verdict::note);
  CHECK(power_finding(files).text == "the clock is limited to 2.0 of 3.0 GHz");
  folder.add(frequency + "scaling_max_freq", "1000000\n");
  CHECK(power_finding(files).verdict == Verdict::harmful);
  folder.add(power + "BAT0/type", "Battery\n");
  folder.add(power + "AC/type", "Mains\n");
  folder.add(power + "AC/online", "0\n");
  CHECK(power_finding(files).text.starts_with("the machine runs on its battery"));
  folder.add(power + "AC/online", "1\n");
  CHECK(power_finding(files).text == "the clock is limited to 1.0 of 3.0 GHz");
}

TEST_CASE("products are compared with what the CPU can do, mildly beside other programs") {
  Machine machine;
  machine.level = VectorLevel::avx512;
  machine.blas.kernel = "SkylakeX";
  const Speed good{.ours = 230e9, .blas = 200e9, .peak = 270e9}, poor{.ours = 80e9, .blas = 80e9, .peak = 270e9},
      middling{.ours = 120e9, .blas = 200e9, .peak = 270e9}, slow_blas{.ours = 230e9, .blas = 20e9, .peak = 270e9};
  CHECK(speed_finding(good, false, machine).verdict == Verdict::ok);
  CHECK(speed_finding(good, true, machine).verdict == Verdict::ok);
  CHECK(speed_finding(good, false, machine).text ==
        "products reach 230 GF/s by our kernels and 200 by OpenBLAS: 85 and 74 % of what the CPU can do (270)");
  CHECK(speed_finding(middling, false, machine).verdict == Verdict::note);
  CHECK(speed_finding(slow_blas, false, machine).verdict == Verdict::note);  // few products are OpenBLAS's
  CHECK(speed_finding(poor, false, machine).verdict == Verdict::harmful);
  CHECK(speed_finding(poor, false, machine).advice == "see the lines build, threads and blas");
  CHECK(speed_finding(poor, true, machine).verdict == Verdict::note);
  machine.build.level = VectorLevel::avx512;
  machine.blas.kernel = "Haswell";  // which no product uses
  CHECK(speed_finding(slow_blas, false, machine).verdict == Verdict::ok);
  CHECK(speed_finding(slow_blas, false, machine)
            .text.starts_with(
                "products reach 230 GF/s by our kernels and 20 by OpenBLAS, which none uses: 85 and 7 % of "));
  CHECK(speed_finding(poor, false, machine).verdict == Verdict::harmful);
}

TEST_CASE("all three speeds can be measured") {
  const Speed speed = measured_speed_of(read_machine());
  CHECK(speed.ours > 0);
  CHECK(speed.blas > 0);
  CHECK(speed.peak > 0);
}
