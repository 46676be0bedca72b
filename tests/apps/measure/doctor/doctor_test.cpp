// Chapter 9. Tests of `orrery doctor`: its lines, its file, its exit code, and that trainings say the same.
#include "apps/measure/doctor/doctor.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

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
       {"cpu", "build", "threads", "tiles", "blas", "openmp", "memory", "disk", "power", "load", "speed"})
    CHECK(contains("\n" + result.text, "  " + subject + std::string(9 - subject.size(), ' ')));
  const auto report = nlohmann::json::parse(orrery::contents(json));
  const bool harmful = report.at("harmful").get<int>() > 0;
  CHECK(result.exit_code == (harmful ? 1 : 0));
  CHECK(contains(result.text, "\nharmful  ") == harmful);
  CHECK(line(result.text, -1).ends_with(" " + std::to_string(report.at("harmful").get<int>()) + " harmful"));
  CHECK(report.at("peak_gflop_per_second").get<double>() > 0);
  CHECK(report.at("findings").size() >= 11);
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
    const Result examined = shell(slow + doctor);
    CHECK(examined.exit_code == 1);
    CHECK(contains(examined.text, "\nharmful  blas     OpenBLAS "));
    CHECK(
        contains(examined.text, ", kernel Prescott, which uses 128-bit vectors, as OPENBLAS_CORETYPE says, and this "));
    CHECK(contains(shell(slow + "doctor 2>&1 >/dev/null").text, "orrery: doctor: harmful: "));
    for (const std::string& training : {toy, lm})
      CHECK(contains(shell(slow + training).text,
                     ", kernel Prescott, which uses 128-bit vectors, as OPENBLAS_CORETYPE "));
    const std::string advice = examined.text.substr(examined.text.find("; set OPENBLAS_CORETYPE=") + 6),
                      taken = advice.substr(0, advice.find(',')) + " " + quoted_program;
    CHECK_FALSE(contains(shell(taken + toy).text, "warning: OpenBLAS"));
    CHECK(contains(shell(taken + doctor).text, "\nok       blas     OpenBLAS "));
  }
  CHECK(contains(shell(passive + doctor).text, "note     openmp   OMP_WAIT_POLICY=passive makes "));
  CHECK_FALSE(contains(shell(passive + toy).text, "note: "));
  CHECK(contains(shell(passive + bench).text, "\nnote: OMP_WAIT_POLICY=passive makes "));
}

TEST_CASE("what the doctor does not take is wrong usage, and a file that cannot be written is a failure") {
  check_usage_error("doctor --threads 0", "--threads", "from 1 to 256");
  check_usage_error("doctor now", "'now'", "orrery doctor --help");
  check_failure(quoted_program + "doctor --json /nowhere/file", "/nowhere/file");
}
