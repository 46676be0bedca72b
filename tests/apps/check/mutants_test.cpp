// Chapter 9. Tests of the table of mutants.
#include "apps/check/mutants.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

using namespace orrery;
using Fate = Mutant::Fate;

namespace {

std::vector<MutatedRow> made_up() {
  const Row row{"gate", {"gate", "rows", {}, {}}};
  return {{row,
           {{{"mul", 0, 0, "x 0", Fate::caught, GradientCheck::coordinate},
             {"mul", 0, 0, "x -1", Fate::caught, GradientCheck::kinks},
             {"mul", 1, 1, "x 2", Fate::survived, GradientCheck::none, "the check passes"},
             {"exp", 2, 0, "dropped", Fate::equivalent, GradientCheck::none, "size 0"},
             {"exp", 2, 0, "x 2", Fate::equivalent, GradientCheck::none, "size 0"},
             {"engine", -1, -1, "overwrites", Fate::caught, GradientCheck::error}}},
           ""}};
}

template <class Print, class Table>
std::string printed(Print print, const Table& table) {
  std::ostringstream out;
  print(out, table);
  return out.str();
}

}  // namespace

TEST_CASE("equivalent ones are not among the mutants") {
  const MutantCount count = count_mutants(made_up());
  CHECK(count.mutants == 4);
  CHECK(count.caught == 3);
  CHECK(count.equivalent == 2);
}

TEST_CASE("a line for each operation, by the check that caught, then the engine") {
  CHECK(printed(print_mutants, made_up()) ==
        "operation               mutants caught coordinate direction no gradient shape error other equivalent\n"
        "exp                           0      0          0         0           0     0     0     0          2\n"
        "mul                           3      2          1         0           0     0     0     1          0\n"
        "engine: overwrites            1      1          0         0           0     0     1     0          0\n");
}

TEST_CASE("a row whose own backward is wrong is counted apart, and is in the JSON") {
  std::vector<MutatedRow> table = made_up();
  table.push_back({table[0].row, {}, "wrong before anything is changed"});
  CHECK(count_mutants(made_up()).rows_not_mutated == 0);
  CHECK(count_mutants(table).rows_not_mutated == 1);
  const auto json = nlohmann::json::parse(mutants_as_json(table, 3, table.size()));
  REQUIRE(json["rows_not_mutated"].size() == 1);
  CHECK(json["rows_not_mutated"][0]["error"] == "wrong before anything is changed");
}

TEST_CASE("an equivalent mutant of the engine has no input") {
  std::vector<MutatedRow> table = made_up();
  table[0].report.mutants = {
      {"engine", -1, -1, "oldest first", Fate::equivalent, GradientCheck::none, "no difference"}};
  CHECK(printed(print_equivalent, table) ==
        "\nequivalent, since they change no gradient:\n  gate, rows (no difference)\n    engine: oldest first\n\n");
}

TEST_CASE("equivalent mutants and survivors are named") {
  CHECK(printed(print_equivalent, made_up()) ==
        "\nequivalent, since they change no gradient:\n  gate, rows (size 0)\n    input 0 of exp: dropped, x 2\n\n");
  CHECK(printed(print_uncaught, made_up()[0]) == "SURVIVED gate, rows: x 2: input 1 of mul (the check passes)\n");
  CHECK(printed(print_uncaught, MutatedRow{made_up()[0].row, {}, "cannot be built"}) ==
        "FAIL gate, rows: cannot be built\n");
}

TEST_CASE("JSON names every mutant and its fate") {
  const auto json = nlohmann::json::parse(mutants_as_json(made_up(), 3, made_up().size()));
  CHECK(json["mutants"] == 4);
  CHECK(json["list"].size() == 6);
  CHECK(json["list"][0]["why"] == "coordinate");
  CHECK(json["list"][2]["fate"] == "survived");
  CHECK(json["list"][2]["why"] == "the check passes");
}
