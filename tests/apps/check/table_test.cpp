// Chapter 9. Tests of the tables of proofs, of mutants and of mistakes under numbers: their rows, as text and as JSON.
#include "apps/check/table.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "apps/check/bugs.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "tests/core/temporary_folder.h"
#include "tests/text.h"

using namespace orrery;
using Fate = Mutant::Fate;
using orrery::style::find_source;
using orrery::style::tree;

namespace {

ProvenRow made_up(bool ok) {
  ProvenRow proven{{"nn/SomethingWithALongName", {"SomethingWithALongName", "and a long variant", {}, {}}}, {}};
  proven.proof.gradients = {.inputs = 64,
                            .coordinates = 294,
                            .skipped = 3,
                            .worst_error = 5e-9,
                            .worst_at = "decoder.layers.0.linear1.weight[10, 1]",
                            .gradient_norm = 30,
                            .zeros = {{"bias", std::string(90, 'w') + " it must be"}},
                            .failures = {},
                            .problems = {},
                            .message = ""};
  proven.proof.f32_error = 4e-7;
  proven.proof.seconds = 1.2;
  proven.proof.parts = {{"gradients", true, ""}, {"f32", ok, "too far off, and said " + std::string(90, 'y')}};
  return proven;
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

}  // namespace

TEST_CASE("a row is one line of at most 100 columns under its header, and what failed stands below") {
  std::ostringstream header, right, wrong;
  print_proof_header(header);
  print_proof(right, made_up(true), {}, "");
  print_proof(wrong, made_up(false), {}, made_up(false).proof.message());
  CHECK(right.str() ==
        "nn/SomethingWithALongName, and .. 64    294 5e-09 ..ight[10, 1] 3.0e+01     3     1 4e-07  1200 ok\n"
        "    nn/SomethingWithALongName, and a long variant: worst at decoder.layers.0.linear1.weight[10, 1]\n");
  const size_t kinks = header.str().find(" kinks");
  REQUIRE(kinks != std::string::npos);
  CHECK(right.str().find("     3 ") == kinks);  // as wide as its title
  CHECK(wrong.str().find(" FAIL\n    nn/SomethingWithALongName, and a long variant: worst at ") != std::string::npos);
  CHECK(wrong.str().find("[10, 1]\n  f32: too far off") != std::string::npos);
  for (const auto* text : {&header, &right, &wrong}) check_width(text->str());
}

TEST_CASE("JSON holds everything, uncut, and is written whole") {
  const TemporaryFolder folder;
  write_text(folder / "proofs.json", proofs_as_json({made_up(true), made_up(false)}, 7, 2));
  const auto json = nlohmann::json::parse(contents(folder / "proofs.json"));
  CHECK(json["seed"] == 7);
  CHECK(json["checked"] == 2);
  CHECK(json["failed"] == 1);
  CHECK(json["rows"][0]["worst_at"] == "decoder.layers.0.linear1.weight[10, 1]");
  CHECK(json["rows"][1]["parts"][1]["ok"] == false);
  CHECK(json["rows"][0]["zeros"][0]["name"] == "bias");
}

TEST_CASE("no two rows have the same label, and layers stand under nn/") {
  std::set<std::string> labels;
  size_t layers = 0;
  for (const Row& row : all_rows()) {
    CHECK(labels.insert(row.label()).second);
    layers += row.name.starts_with("nn/") ? 1 : 0;
  }
  for (const std::string label :
       {"softmax, rows", "nn/Linear", "nn/EncoderLayer, post-norm", "nn/Transformer, post-norm"})
    CHECK(labels.contains(label));
  CHECK(layers >= 30);
  CHECK(labels.size() >= layers + 100);
}

TEST_CASE("names and globs select by name or label, in the table's order") {
  const std::vector<Row> rows = all_rows();
  const auto chosen = [&](const std::vector<std::string>& patterns) { return chosen_rows(rows, patterns); };
  CHECK(chosen({}).size() == rows.size());
  CHECK(chosen({"softmax, rows"}).size() == 1);
  CHECK(chosen({"softmax", "softmax"}).size() == chosen({"softmax"}).size());
  CHECK(chosen({"nn/*"}).front().name == "nn/Linear");
  CHECK(chosen({"nn/*", "add"}).front().name == "add");
  CHECK(chosen({"nn/Transformer, pre*"}).size() == 1);
  CHECK_THROWS(chosen({"softmax", "nonsense"}));
}

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

template <class Print, class Table> std::string printed(Print print, const Table& table) {
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

TEST_CASE("a mistake takes the place of its rows, and of no others") {
  const nn::Bug& bug = bug_of(22);
  const std::vector<Row> right = all_rows(), wrong = with_bug(right, bug);
  REQUIRE(wrong.size() == right.size());
  size_t replaced = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    CHECK(wrong[i].label() == right[i].label());
    replaced += is_replaced(wrong[i], bug) ? 1 : 0;
    if (wrong[i].label() == "softmax, rows") {
      CHECK(gradcheck(right[i].sample.build(f64)));
      CHECK_FALSE(gradcheck(wrong[i].sample.build(f64)));
    }
  }
  CHECK(replaced == bug.samples.size());
}

TEST_CASE("symptoms leave out guesses, and what follows from wrong gradients") {
  const auto of = [](std::vector<ProofPart> parts) {
    return symptoms({.name = "", .variant = "", .gradients = {}, .mutants = {}, .parts = std::move(parts)});
  };
  const ProofPart wrong{"gradients", false, "wrong"}, far{"far", false, "wrong as well"};
  const ProofPart interleaved{"interleaved", false, "wrong again"}, changed{"changed", false, "no error", "a Tensor?"};
  CHECK(of({wrong, {"f32", true, "0"}, far, interleaved}) == "gradients: wrong\nalso failed: far, interleaved");
  CHECK(of({{"gradients", true, "12"}, far, changed}) == "far: wrong as well\nchanged: no error");
  CHECK(of({wrong, changed}) == "gradients: wrong\nchanged: no error");
  CHECK(of({{"gradients", true, "12"}}) == "");
}

TEST_CASE("a mistake without a row is refused") {
  const nn::Bug nowhere{.name = "nowhere", .mistake = "", .hint = "", .samples = {{"nothing", "", {}, {}}}};
  CHECK_THROWS_AS(with_bug(all_rows(), nowhere), Error);
}

namespace {

const i64 last_number = static_cast<i64>(numbered_bugs().size());

std::string text_of(void (*print)(std::ostream&, i64), i64 number) {
  std::ostringstream out;
  print(out, number);
  return out.str();
}

}  // namespace

TEST_CASE("every mistake of the zoo has one number") {
  CHECK(last_number >= 20);
  std::set<std::string> named, zoo;
  for (const NumberedBug& bug : numbered_bugs()) named.insert(bug.name);
  for (const nn::Bug& bug : nn::bug_zoo()) zoo.insert(bug.name);
  CHECK(named == zoo);
  CHECK(static_cast<i64>(named.size()) == last_number);
  for (i64 number = 1; number <= last_number; ++number) CHECK(bug_of(number).name == numbered_bug(number).name);
  CHECK_THROWS_AS(numbered_bug(0), Error);
  CHECK_THROWS_AS(numbered_bug(last_number + 1), Error);
}

TEST_CASE("one line of the file named holds the wrong code") {
  for (const NumberedBug& bug : numbered_bugs()) {
    CAPTURE(bug.name);
    const style::Source* source = find_source(tree(), bug.file);
    REQUIRE(source != nullptr);
    CHECK(std::count_if(source->lines.begin(), source->lines.end(),
                        [&](const std::string& line) { return line.find(bug.code) != line.npos; }) == 1);
  }
}

TEST_CASE("the list says the chapter and the difficulty of each number, and nothing that gives it away") {
  std::ostringstream out;
  list_bugs(out);
  std::map<std::string, int> difficulties;
  for (const NumberedBug& bug : numbered_bugs()) {
    CHECK(out.str().find(bug.name) == std::string::npos);
    CHECK((bug.chapter >= 1 && bug.chapter <= 7));
    ++difficulties[bug.difficulty];
  }
  CHECK(difficulties.size() == 3);
  CHECK(difficulties["easy"] + difficulties["medium"] + difficulties["hard"] == last_number);
  CHECK(out.str().starts_with(
      "bug  1  chapter 5  easy\nbug  2  chapter 6  medium  repair a copy: apps/run exercise bug.2\n"));
}

TEST_CASE("what is revealed is the mistake in words, its file and the code") {
  for (i64 number = 1; number <= last_number; ++number) {
    const NumberedBug& bug = numbered_bug(number);
    const std::string text = text_of(reveal_bug, number);
    CAPTURE(text);
    CHECK(text.starts_with("bug " + std::to_string(number) + ": " + bug.name + "\n  "));
    CHECK(text.find("  " + bug.file + ": " + bug.code + "\n") != std::string::npos);
  }
  CHECK(text_of(reveal_bug, 16).find("The derivative is written as 1 - x^2 where it is 1 - y^2.\n") !=
        std::string::npos);
}
