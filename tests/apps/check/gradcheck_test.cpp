// Chapter 9. Tests of `orrery gradcheck` as a program: its last lines, exit codes and width.
#include <nlohmann/json.hpp>

#include "apps/check/bugs.h"
#include "apps/program/command.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

namespace {

Result gradcheck(const std::string& arguments) {
  const Result result = run("gradcheck " + arguments);
  std::istringstream lines(result.text);
  for (std::string one; std::getline(lines, one);) CHECK(one.size() <= 100);
  CHECK(result.text.find('\033') == std::string::npos);
  return result;
}

// The number of mutants in the last line, all of which must be caught.
long mutants_caught(const std::string& text) {
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  long mutants = 0, caught = -1;
  REQUIRE(std::sscanf(last.c_str(), "%ld mutants, %ld caught", &mutants, &caught) == 2);
  CHECK(caught == mutants);
  return mutants;
}

}  // namespace

TEST_CASE("rows are counted, and declared zeros are named") {
  const Result result = gradcheck("softmax 'dropout, p 0'");
  CHECK(result.exit_code == done);
  CHECK(result.text.ends_with("\n6 checked, 0 failed\n"));
  CHECK(contains(result.text, "softmax, one element: input 0, softmax over one element is always 1"));
}

TEST_CASE("mutants are counted, and equivalent ones named") {
  const Result result = gradcheck("--mutate softmax matmul");
  CHECK(result.exit_code == done);
  CHECK(contains(result.text, "\n  softmax, one element (declared zero: "));
  CHECK(mutants_caught(result.text) > 100);
}

TEST_CASE("--json writes the same in full") {
  const TemporaryFolder folder;
  CHECK(gradcheck("softmax --json " + folder / "a.json").exit_code == done);
  CHECK(contains(contents(folder / "a.json"), "\"checked\": 5"));
  const Result nowhere = gradcheck("softmax --json " + folder / "missing/a.json");
  CHECK(nowhere.exit_code == failed);
  CHECK_FALSE(contains(nowhere.text, " ok\n"));  // said before the work, not after it
}

TEST_CASE("Ctrl-C ends with 130, and what --json then writes says that it is not complete") {
  const TemporaryFolder folder;
  gradcheck("softmax --json " + folder / "a.json");
  CHECK(contains(contents(folder / "a.json"), "\"complete\": true"));
  const std::string file = folder / "cut.json";
  const Result cut = shell("timeout --foreground --preserve-status -s INT 1 " + quoted_program +
                           "gradcheck --all --threads 1 --json '" + file + "' 2>/dev/null");
  CHECK(cut.exit_code == interrupted);
  CHECK(contains(contents(file), "\"complete\": false"));
}

TEST_CASE("no further row is proven once nobody reads the results") {
  const TemporaryFolder folder;
  const std::string file = folder / "left.json";
  const std::string command = quoted_program + "gradcheck --json '" + file + "' 2>/dev/null | head -n 1";
  CHECK(shell("bash -o pipefail -c \"" + command + "\"").exit_code == done);
  CHECK(contains(contents(file), "\"complete\": false"));
}

TEST_CASE("a bug that is caught is a success, one that survives is a failure") {
  const Result result = gradcheck("--bug 1 'dropout*' softmax");
  CHECK(result.exit_code == done);
  CHECK(contains(result.text, "ratio 0.7000 everywhere"));
  CHECK_FALSE(contains(result.text, "\nsoftmax"));  // holds no mistake
  CHECK(contains(result.text, "\nbug 1: caught, 1 of the 3 rows that contain it fails\n"));
  const Result unseen = gradcheck("--bug 1 'dropout, p 0'");
  CHECK(unseen.exit_code == failed);
  CHECK(contains(unseen.text, "\nbug 1: SURVIVED, the one row that contains it passes\n"));
  CHECK(gradcheck("--bug 1 softmax").exit_code == wrong_usage);
}

TEST_CASE("the shapes beside a ratio tell a factor of 2 from the root of 4") {
  const Result result = gradcheck("--bug 9");
  CHECK(contains(result.text, "input 0 [2, 2, 3, 4], input 1 [2, 2, 3, 4], input 2 [2, 2, 3, 2]\n"));
  CHECK(contains(result.text, "ratio 2.0000 everywhere"));
  CHECK(contains(result.text, "input 0 [2, 2, 2, 3], input 1 [2, 2, 3, 3], input 2 [2, 2, 3, 2]\n"));
  CHECK(contains(result.text, "ratio 1.7321 everywhere"));
}

TEST_CASE("a Chinese reader gets the symptoms, the hint and the mistake in Chinese") {
  const auto said = [](const std::string& arguments) {
    return shell("LC_ALL=zh_CN.UTF-8 " + quoted_program + "gradcheck " + arguments + " 2>/dev/null").text;
  };
  CHECK(said("--hint 19") == "e^0 是多少？\n");
  CHECK(contains(said("--reveal 11"), "  加到每一行上的那一行，只得到了第一行的梯度。\n"));
  const std::string symptoms = said("--bug 11");
  CHECK(contains(symptoms, "\nbug 11: 查出来了，含有它的那一行不通过\n提示：orrery gradcheck --hint 11；"));
  CHECK(contains(symptoms, "gradients：3 个坐标错了，共 15 个"));
}

// The tests of the zoo find every bug; here are a few, of each kind.
TEST_CASE("the symptoms of a bug are shown, and do not name it") {
  for (const i64 number : {2, 7, 12, 17, 22, 27}) {
    const Result result = run("gradcheck --bug " + std::to_string(number), "2>&1");
    CAPTURE(number);
    CHECK(result.exit_code == done);
    const nn::Bug& bug = bug_of(number);
    CHECK(contains(result.text, "bug " + std::to_string(number) + ": caught"));
    for (const std::string& secret : {bug.name, bug.mistake, bug.hint, numbered_bug(number).code})
      CHECK_FALSE(contains(result.text, secret));
    CHECK(contains(result.text, "apps/run exercise bug.") == numbered_bug(number).to_repair());
  }
}

TEST_CASE("a bug that no derivative shows is shown by its leak matrix, or by a check of its own") {
  const Result relu = gradcheck("--bug 21");
  CHECK(contains(relu.text, "\nrelu, [3, 4] "));
  CHECK(contains(relu.text, "Every row passes: no gradient check finds it.\nA check of its own:\n"));
  const Result shift = gradcheck("--bug 5");
  CHECK(shift.text.starts_with("No row of the table contains it, and no gradient check finds it.\n#: moves"));
  CHECK(contains(shift.text, "row 0   0 - X . . .   . . . . .\n"));
  CHECK(gradcheck("--bug 5 relu").exit_code == wrong_usage);
}

TEST_CASE("layers may be called without their folder") {
  CHECK(gradcheck("Embedding").text.ends_with("\n1 checked, 0 failed\n"));
  CHECK(gradcheck("'Linear, no bias'").text.ends_with("\n1 checked, 0 failed\n"));
}

TEST_CASE("a row's name in full, and where its worst error is, stand below what was cut") {
  const Result result = gradcheck("'nn/Transformer, shared*'");
  CHECK(contains(result.text, "\n    nn/Transformer, shared embeddings, learned positions, gelu, dropout: worst at"));
}

TEST_CASE("another seed draws other inputs, and the same seed the same") {
  const TemporaryFolder folder;
  const auto norms = [&](const std::string& seed) {
    const std::string file = folder / "a.json";
    CHECK(gradcheck("softmax --seed " + seed + " --json '" + file + "'").exit_code == done);
    std::vector<double> result;
    const nlohmann::json written = nlohmann::json::parse(contents(file));
    for (const auto& row : written.at("rows")) result.push_back(row.at("gradient_norm"));
    REQUIRE(result.size() == 5);
    return result;
  };
  CHECK(norms("1") == norms("1"));
  CHECK(norms("1") != norms("2"));
}

TEST_CASE("options that exclude each other, and empty values, as of an unset variable, are wrong usage") {
  for (const std::string arguments :
       {"--bug ''", "--json ''", "''", "--all softmax", "--mutate --list", "--bug nonsense", "--bug 0", "--bug 34",
        "--bug 1 --mutate", "--reveal 1 --hint 1", "--reveal 1 relu", "--hint 7 --threads 2", "--list --seed 2"})
    CHECK(gradcheck(arguments).exit_code == wrong_usage);
  check_usage_error("gradcheck nonsense", "'nonsense'", "--list");
  check_usage_error("gradcheck --bug nonsense", "nonsense", "1 to 33");
  check_usage_error("gradcheck --bug 1 softmax", "none of the chosen rows", "leave the names out");
}

TEST_CASE("many seeds are counted together") {
  CHECK(gradcheck("relu --seeds 1..2").text == "2 seeds, 10 checked, 0 failed, 0 drawn again\n");
  CHECK(gradcheck("relu --seeds 2").text == "1 seed, 5 checked, 0 failed, 0 drawn again\n");
}

TEST_CASE("rows in which nothing can be checked are not a success") {
  for (const std::string arguments : {"gradcheck 'softmax, size 0'", "gradcheck 'softmax, size 0' --seeds 1..2"}) {
    CAPTURE(arguments);
    const Result result = run(arguments, "2>&1");
    CHECK(result.exit_code == failed);
    CHECK(contains(result.text, "nothing was checked: every input of these rows has size 0\n"));
  }
  CHECK(gradcheck("'softmax, size 0' 'softmax, one element'").exit_code == done);
}

TEST_CASE("what --seeds does not take is wrong usage") {
  for (const std::string range : {"3..1", "x", "1..", "-1..2", "1..2..3", "''", "1..9999999999"})
    CHECK(gradcheck("relu --seeds " + range).exit_code == wrong_usage);
  for (const std::string with : {"--seeds 1..2 --seed 3", "--seeds 1..2 --mutate", "--operations relu"})
    CHECK(gradcheck(with).exit_code == wrong_usage);
}

TEST_CASE("slow: every mutant of every operation, layer and model is caught") {
  const Result result = gradcheck("--mutate");
  CHECK(result.exit_code == done);
  CHECK(contains(result.text, "engine: no un-broadcast"));
  CHECK_FALSE(contains(result.text, "SURVIVED"));
  CHECK(mutants_caught(result.text) > 40'000);
}
