// Chapter 9. Tests of `orrery bench busy`: its verdict, its table, its file; none of its times.
#include "apps/measure/bench/busy.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

TEST_CASE("bench busy says what is missed, where that is promised, within 100 columns") {
  std::ostringstream out;
  print_busy(out, "toy", 2,
             {{"nothing", 0.009, 0.008, false},
              {"a program that computes", 0.0084, 0.008, true},
              {"a second training", 0.0085, 0.008, true}});
  CHECK(out.str() ==
        "toy: milliseconds of a step\n"
        "beside                    2 threads    1 thread  ratio\n"
        "nothing                        9.00        8.00  1.125\n"
        "a program that computes        8.40        8.00  1.050\n"
        "a second training              8.50        8.00  1.062  MISSED\n");
}

TEST_CASE("a bench fails if one of its rows is missed, and if none is, it does not") {
  const BusyRow kept{"a program that computes", 0.0084, 0.008, true}, missed{"a second training", 0.0085, 0.008, true},
      unbounded{"nothing", 0.009, 0.008, false};
  CHECK(exit_code_of(std::vector{unbounded, kept}) == done);
  CHECK(exit_code_of(std::vector{unbounded, kept, missed}) == failed);
  CHECK(exit_code_of(std::vector{missed, kept}) == failed);
}

TEST_CASE("benches of steps warn where other programs keep the cores busy") {
  const std::string busy =
      "for i in $(seq $((2 * $(nproc)))); do timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & "
      "others=\"$others $!\"; done; ";
  for (const std::string bench : {"step --steps 1", "profile --steps 1"}) {
    CAPTURE(bench);
    const Result result =
        shell(busy + "timeout 50 " + quoted_program + "bench " + bench + " --threads 1 2>&1 >/dev/null; kill $others");
    CHECK(contains(result.text, ": measured times will be too long"));
  }
}

TEST_CASE("bench busy measures three rows, keeps them, and fails where it says MISSED") {
  const TemporaryFolder folder;
  const std::string path = folder / "busy.json";
  const Result result = run("bench busy --steps 1 --threads 2 --json " + path);
  CHECK(result.exit_code == (contains(result.text, "MISSED") ? 1 : 0));
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 5);
  std::ifstream file(path);
  const nlohmann::json kept = nlohmann::json::parse(file);
  CHECK(kept["bench"] == "busy");
  CHECK(kept["threads"] == 2);
  for (const auto& row : kept["results"]["rows"]) CHECK(row["all_ms"] > 0);
  CHECK(kept["results"]["rows"].size() == 3);
}
