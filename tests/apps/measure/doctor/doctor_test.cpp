// Chapter 9. Tests of `orrery doctor`: disk, power, speed and peak; its lines, its file, its exit code, and that
// trainings say the same.
#include "apps/measure/doctor/checks.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/run_program.h"
#include "tests/apps/system_folder.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using namespace orrery;

TEST_CASE("findings are printed one in a line, and counted") {
  const std::vector<orrery::Finding> all{{orrery::Verdict::ok, "cpu", "two cores"},
                                         {orrery::Verdict::note, "threads", "too\x1Bmany", "use fewer"},
                                         {orrery::Verdict::harmful, "blas", "slow", "unset it"}};
  std::ostringstream out;
  orrery::print_findings(out, all, {});
  CHECK(out.str() ==
        "ok       cpu      two cores\n"
        "note     threads  too?many; use fewer\n"
        "harmful  blas     slow; unset it\n"
        "3 findings: 1 to note, 1 harmful\n");
  CHECK_THROWS_WITH(orrery::check_harmless(all), "doctor: harmful: blas");
  CHECK_NOTHROW(orrery::check_harmless({all[0], all[1]}));
}

TEST_CASE("the doctor names every subject, and its exit code and file say whether something is harmful") {
  const orrery::TemporaryFolder folder;
  const std::string json = folder / "doctor.json";
  const Result result = run("doctor --json '" + json + "'");
  for (const std::string subject :
       {"cpu", "build", "threads", "blas", "openmp", "memory", "disk", "power", "load", "speed", "bf16"})
    CHECK(contains("\n" + result.text, "  " + subject + std::string(9 - subject.size(), ' ')));
  const auto report = nlohmann::json::parse(orrery::contents(json));
  const bool harmful = report.at("harmful").get<int>() > 0;
  CHECK(result.exit_code == (harmful ? 1 : 0));
  CHECK(contains(result.text, "\nharmful  ") == harmful);
  CHECK(line(result.text, -1).ends_with(" " + std::to_string(report.at("harmful").get<int>()) + " harmful"));
  CHECK(report.at("peak_gflop_per_second").get<double>() > 0);
  CHECK(report.at("findings").size() >= 10);
}

TEST_CASE("a training prints what is harmful in the environment, and a measurement also what is worth a note") {
  const std::string limited = "OMP_THREAD_LIMIT=1 " + quoted_program,
                    slow = "OPENBLAS_CORETYPE=Prescott " + quoted_program,
                    passive = "OMP_WAIT_POLICY=passive " + quoted_program,
                    small = "--steps 1 --batch 2 --heads 2 --d-model 8 --d-ff 8 ",
                    toy = "toy --encoder-layers 1 --decoder-layers 1 " + small + "2>&1 >/dev/null",
                    lm = "lm train --block 8 --layers 1 --evaluate-every 0 " + small + "2>&1 >/dev/null",
                    bench = "bench step --config toy --steps 1 --batch 2 2>&1 >/dev/null",
                    doctor = "doctor 2>/dev/null";
  if (orrery::read_machine().allowed > 1) {
    CHECK(contains(shell(limited + doctor).text, "  threads  OMP_THREAD_LIMIT=1 leaves "));
    CHECK(contains(shell(limited + toy).text, ": OMP_THREAD_LIMIT=1 leaves "));
    CHECK(shell(limited + doctor).exit_code == 1);
  }
  const bool any_kernel = contains(orrery::read_machine().blas.config, "DYNAMIC_ARCH");
  if (any_kernel && orrery::cpu_vector_level() > orrery::VectorLevel::baseline) {
    CHECK_FALSE(contains(shell(slow + doctor).text, "\nharmful  blas "));  // products are the library's
    CHECK_FALSE(contains(shell(slow + toy).text, "warning: OpenBLAS"));
    const std::string by_blas = " --products blas ", doctor_of_blas = "doctor" + by_blas + "2>/dev/null";
    const Result examined = shell(slow + doctor_of_blas);
    CHECK(examined.exit_code == 1);
    CHECK(contains(examined.text, "\nharmful  blas     OpenBLAS "));
    CHECK(
        contains(examined.text, ", kernel Prescott, which uses 128-bit vectors, as OPENBLAS_CORETYPE says, and this "));
    CHECK(contains(shell(slow + "doctor --products blas 2>&1 >/dev/null").text, "orrery: doctor: harmful: "));
    for (const std::string& training : {toy, lm})
      CHECK(contains(shell(slow + training + by_blas).text,
                     ", kernel Prescott, which uses 128-bit vectors, as OPENBLAS_CORETYPE "));
    const std::string advice = examined.text.substr(examined.text.find("; set OPENBLAS_CORETYPE=") + 6),
                      taken = advice.substr(0, advice.find(',')) + " " + quoted_program;
    CHECK_FALSE(contains(shell(taken + toy + by_blas).text, "warning: OpenBLAS"));
    CHECK(contains(shell(taken + doctor_of_blas).text, "\nok       blas     OpenBLAS "));
  }
  CHECK(contains(shell(passive + doctor).text, "note     openmp   OMP_WAIT_POLICY=passive makes "));
  CHECK_FALSE(contains(shell(passive + toy).text, "note: "));
  CHECK(contains(shell(passive + bench).text, "\nnote: OMP_WAIT_POLICY=passive makes "));
}

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

TEST_CASE("the doctor says when products in bf16 are faster") {
  CHECK(bf16_finding("f32 arithmetic", 0.96).text ==
        "--precision bf16 computes products by f32 arithmetic, 1.0 times as fast as f32");
  CHECK(bf16_finding("f32 arithmetic", 1.4).text ==  // one of the two was interrupted
        "--precision bf16 computes products by f32 arithmetic, 1.4 times as fast as f32");
  const Finding faster = bf16_finding("AMX", 3.14);
  CHECK(faster.verdict == Verdict::ok);
  CHECK(faster.text ==
        "--precision bf16 computes products by AMX, 3.1 times as fast as f32: trainings of large models would be "
        "faster with it");
  CHECK(bf16_finding("f32 arithmetic, since AMX gives wrong products here", 1).verdict == Verdict::note);
}

TEST_CASE("products are compared with what the CPU can do, mildly beside other programs") {
  Machine machine;
  machine.level = VectorLevel::avx512;
  machine.uses_blas = true;
  const Speed good{.ours = 230e9, .blas = 200e9, .peak = 270e9}, poor{.ours = 80e9, .blas = 80e9, .peak = 270e9},
      middling{.ours = 120e9, .blas = 200e9, .peak = 270e9}, slow_blas{.ours = 230e9, .blas = 20e9, .peak = 270e9};
  CHECK(speed_finding(good, false, machine).verdict == Verdict::ok);
  CHECK(speed_finding(good, true, machine).verdict == Verdict::ok);
  CHECK(speed_finding(good, false, machine).text ==
        "products reach 230 GF/s by OpenBLAS in tiles and 200 by OpenBLAS at once: 85 and 74 % of what the CPU can "
        "do (270)");
  CHECK(speed_finding(slow_blas, false, machine).verdict == Verdict::harmful);
  CHECK(speed_finding(poor, false, machine).verdict == Verdict::harmful);
  CHECK(speed_finding(poor, false, machine).advice == "see the lines build, threads and blas");
  CHECK(speed_finding(poor, true, machine).verdict == Verdict::note);
  machine.uses_blas = false;
  CHECK(speed_finding(middling, false, machine).verdict == Verdict::note);
  CHECK(speed_finding(slow_blas, false, machine).verdict == Verdict::ok);
  CHECK(speed_finding(slow_blas, false, machine)
            .text.starts_with(
                "products reach 230 GF/s by our kernels and 20 by OpenBLAS, which none uses: 85 and 7 % of "));
  CHECK(speed_finding(poor, false, machine).verdict == Verdict::harmful);
}

TEST_CASE("the peak can be measured with the vectors of every level that the CPU has") {
  for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > cpu_vector_level()) continue;
    CAPTURE(name_of(level));
    for (const int cores : {1, 2}) CHECK(peak_speed(level, cores, 0.001) > 0);
  }
}

TEST_CASE("the loops leave the numbers of their caller alone") {
  double before = 0.1, sum = 0;
  for (int i = 0; i < 10; ++i) {
    before *= 1.5;
    peak_speed(cpu_vector_level(), 1, 0.0001);
    sum += before;
  }
  double again = 0.1, expected = 0;
  for (int i = 0; i < 10; ++i) expected += again *= 1.5;
  CHECK(sum == expected);
}
