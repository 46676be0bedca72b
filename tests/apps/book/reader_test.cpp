// Chapter 0. Tests of what apps/run does with a reader's own files, in a copy of the scripts and exercises.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using orrery::contents;
using orrery::set_contents;
using orrery::program::contains;
using orrery::program::Result;

namespace {

const std::string in_build_folder = "ORRERY_BUILD='" ORRERY_BUILD_FOLDER "'";

// A copy of apps/run and of the book, where apps/mine is nobody's; the build folder is the tests' own.
class ReadersTree {
 public:
  ReadersTree() {
    namespace fs = std::filesystem;
    const fs::path from = fs::path(ORRERY_SOURCE_DIR) / "apps", to = folder_.path() / "apps";
    fs::create_directories(to / "mine");
    fs::copy(from / "run", to / "run");
    fs::copy(from / "book", to / "book", fs::copy_options::recursive);
    fs::create_directories(to / "data");
    for (const char* file : {"digits.txt", "animals.en"}) fs::copy(from / "data" / file, to / "data" / file);
  }
  /// Runs apps/run there; text is stdout and stderr.
  Result run(const std::string& arguments, const std::string& variables = in_build_folder) const {
    return orrery::program::shell("cd '" + folder_.path().string() + "' && LC_ALL=C " + variables + " apps/run " +
                                  arguments + " 2>&1");
  }
  std::string path(const std::string& name) const { return folder_ / ("apps/" + name); }

 private:
  orrery::TemporaryFolder folder_;
};

void replace(std::string& text, const std::string& what, const std::string& with) {
  REQUIRE(contains(text, what));
  text.replace(text.find(what), what.size(), with);
}

constexpr const char* answer_name = "mine/4.2_softmax.cpp";
const std::string solution = ORRERY_BUILD_FOLDER "/tests/exercises/4.2_softmax.cpp";

// Grades the solution of exercise 4.2 that does `more` first in its backward.
Result graded_after(const ReadersTree& tree, const std::string& more, const std::string& variables = in_build_folder) {
  std::string answer = contents(solution);
  replace(answer, "dx.add(0,", more + "\n    dx.add(0,");
  set_contents(tree.path(answer_name), "#include <unistd.h>\n" + answer);
  return tree.run("exercise 4.2", variables);
}

// The answers that each milestone is made of, by its number: "own.1" of "2.1" and "2.2".
std::map<std::string, std::vector<std::string>> milestones(const ReadersTree& tree) {
  std::map<std::string, std::vector<std::string>> result;
  std::istringstream words(tree.run("exercise own").text);
  std::string milestone;
  for (std::string word; words >> word;) {
    if (word.starts_with("own.")) milestone = word;
    if (std::smatch match; std::regex_match(word, match, std::regex("\\(?([0-9]\\.[0-9])\\)?")))
      result[milestone].push_back(match[1]);
  }
  return result;
}

// Puts a file of the tests into apps/mine for each answer: "" for its solution, "_1" for its first wrong answer.
void answer_all(const ReadersTree& tree, const std::vector<std::string>& numbers, const std::string& kind) {
  for (const auto& file : std::filesystem::directory_iterator(ORRERY_BUILD_FOLDER "/tests/exercises")) {
    const std::string name = file.path().stem().string(), number = name.substr(0, name.find('_'));
    const std::string starter = name.substr(0, name.size() - kind.size());
    if (!name.ends_with(kind) || std::find(numbers.begin(), numbers.end(), number) == numbers.end()) continue;
    if (std::filesystem::exists(
            tree.path("book/ch" + number.substr(0, 1) + "/exercises/" + starter.substr(2) + ".cpp")))
      set_contents(tree.path("mine/" + starter + ".cpp"), contents(file.path().string()));
  }
}

}  // namespace

TEST_CASE("apps/run exercise lists the exercises, and what has been begun and passed") {
  const ReadersTree tree;
  const Result before = tree.run("exercise");
  CHECK(before.exit_code == 0);
  CHECK(contains(before.text, "chapter 4\n"));
  CHECK(contains(before.text, "          4.2  softmax's backward\n"));
  CHECK(contains(before.text, "\n0 of "));
  CHECK(contains(before.text, " bug.2 "));
  CHECK_FALSE(contains(before.text, " bug.0 "));  // the text solves it
  const auto lines = std::count(before.text.begin(), before.text.end(), '\n');
  constexpr int headings = 12 + 1, milestones = 13, count_line = 1;
  CHECK(contains(before.text, "\n0 of " + std::to_string(lines - headings - milestones - count_line) + " passed. "));
  set_contents(tree.path(answer_name), "");
  CHECK(contains(tree.run("exercise").text, "  begun   4.2  softmax's backward\n"));
  set_contents(tree.path("mine/.passed"), "4.2\n");
  CHECK(contains(tree.run("exercise").text, "  passed  4.2  softmax's backward\n"));
  CHECK(contains(tree.run("exercise").text, "\n1 of "));
  const std::string chinese = tree.run("exercise", "LC_ALL=zh_CN.UTF-8 " + in_build_folder).text;
  CHECK(contains(chinese, "\n第 4 章\n"));
  CHECK(contains(chinese, "4.1  矩阵乘法的反向"));
  CHECK(contains(chinese, "bug.12 因果掩码\n"));
  std::istringstream english(before.text);
  for (std::string line; std::getline(english, line);)
    if (contains(line, " bug.") || contains(line, " own.")) CHECK_FALSE(contains(chinese, line + '\n'));
  CHECK(chinese.ends_with("开始做一个，或给它评分：apps/run exercise 编号\n"));
}

TEST_CASE("apps/run exercise refuses a number that there is not, in one line that names what there is") {
  const ReadersTree tree;
  for (const std::string wrong : {"9.99", "4", "softmax", "''", "4.2x", "4x2", "'.*'", "../4.2"}) {
    CAPTURE(wrong);
    const Result result = tree.run("exercise " + wrong);
    CHECK(result.exit_code == 2);
    CHECK(result.text.starts_with("orrery: exercise: there is no '"));
    CHECK(contains(result.text, " 4.2"));
    CHECK_FALSE(contains(result.text, " bug.0"));
    CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
  }
  CHECK(tree.run("exercise 4.2 4.3").exit_code == 2);
}

TEST_CASE("an exercise begins with its starter, fails, and passes with the solution; that is remembered") {
  const ReadersTree tree;
  const Result begun = tree.run("exercise 4.2");
  CHECK(begun.exit_code == 1);
  CHECK(begun.text.starts_with("apps/mine/4.2_softmax.cpp is new."));
  CHECK(contains(begun.text,
                 "FAILED  dx where only y_0 counts\n        [0, 0] is 1, should be 0.109375\n        hint: "));
  CHECK(contains(begun.text, "\n0 of 2 passed\n"));
  CHECK(contents(tree.path(answer_name)) == contents(tree.path("book/ch4/exercises/2_softmax.cpp")));

  const Result shown = tree.run("exercise 4.2 --solution");
  CHECK(shown.exit_code == 0);
  CHECK(shown.text == contents(solution));
  CHECK(tree.run("exercise bug.6 --solution").text == contents(ORRERY_BUILD_FOLDER "/tests/exercises/bug_6.cpp"));
  set_contents(tree.path(answer_name), shown.text);
  const Result solved = tree.run("exercise 4.2");
  CHECK(solved.exit_code == 0);
  CHECK(solved.text ==
        "passed  dx where only y_0 counts\npassed  the whole proof\n2 of 2 passed\nExercise 4.2 is passed.\n");
  CHECK(contents(tree.path("mine/.passed")) == "4.2\n");
  CHECK(contains(tree.run("exercise").text, "  passed  4.2 "));
}

TEST_CASE("slow: a bug begins with a copy of the wrong program, fails, and passes when it is repaired") {
  const ReadersTree tree;
  CHECK(contains(tree.run("exercise").text, "          bug.6  an embedding\n"));
  const Result begun = tree.run("exercise bug.6");
  CHECK(begun.exit_code == 1);
  CHECK(begun.text.starts_with("apps/mine/bug_6.cpp is new. Read it, repair its mistake, and run this again.\n"));
  CHECK(contains(begun.text, "\n1 of 3 passed\n"));
  CHECK(contents(tree.path("mine/bug_6.cpp")) == contents(tree.path("book/bugs/6.cpp")));
  set_contents(tree.path("mine/bug_6.cpp"), contents(ORRERY_BUILD_FOLDER "/tests/exercises/bug_6.cpp"));
  const Result repaired = tree.run("exercise bug.6");
  CHECK(repaired.exit_code == 0);
  CHECK(
      repaired.text.ends_with("\n3 of 3 passed\nBug 6 is repaired. "
                              "What the mistake was: apps/run gradcheck --reveal 6\n"));
  CHECK(contains(tree.run("exercise").text, "  passed  bug.6  an embedding\n"));
  CHECK(tree.run("exercise bug.1").exit_code == 2);  // has no copy
}

TEST_CASE("slow: the worked example of a bug is graded as the others are, and not counted") {
  const ReadersTree tree;
  const std::string count = orrery::program::line(tree.run("exercise").text, -1);
  set_contents(tree.path("mine/bug_0.cpp"), contents(ORRERY_BUILD_FOLDER "/tests/exercises/bug_0.cpp"));
  const Result repaired = tree.run("exercise bug.0");
  CHECK(repaired.exit_code == 0);
  CHECK(repaired.text.ends_with("\nBug 0 is repaired.\n"));
  CHECK(orrery::program::line(tree.run("exercise").text, -1) == count);
}

TEST_CASE("apps/run exercise own shows the milestones on a screen, and of which answers each is made") {
  const ReadersTree tree;
  set_contents(tree.path("mine/.passed"), "2.2\nown.1\n");
  const std::string shown = tree.run("exercise own").text;
  CHECK(contains(shown, "  passed  own.1  a perceptron\n                 (2.1) 2.2\n"));
  CHECK(contains(shown, "          own.6  the reverser\n"));
  CHECK(std::count(shown.begin(), shown.end(), '\n') < 24);
  CHECK(contains(tree.run("exercise").text, shown.substr(0, shown.rfind("To begin"))));
  CHECK(milestones(tree).size() == 6);
  CHECK(tree.run("exercise own.7").exit_code == 2);
  CHECK(tree.run("exercise own.6 --solution").exit_code == 2);
}

TEST_CASE("slow: with the solutions in apps/mine every milestone is reached") {
  const ReadersTree tree;
  for (const auto& [milestone, numbers] : milestones(tree)) {
    answer_all(tree, numbers, "");
    const Result result = tree.run("exercise " + milestone);
    CAPTURE(result.text);
    CHECK(result.exit_code == 0);
    for (const std::string& number : numbers)
      CHECK(contains(result.text, "passed  your answer to " + number + " passes its exercise\n"));
    CHECK(result.text.ends_with("Milestone " + milestone + " is reached: it runs on what you wrote.\n"));
    CHECK(contains(contents(tree.path("mine/.passed")), milestone + "\n"));
  }
  CHECK_FALSE(contains(tree.run("exercise own").text, "("));  // its answers have passed, too
}

// Each answer has a question of its own, and the test of exercises shows that all wrong ones fail theirs; so all are
// wrong at once, and then one beside a right one.
TEST_CASE("slow: a wrong answer fails every milestone that is made of it, and is named") {
  const ReadersTree tree;
  for (const auto& [milestone, numbers] : milestones(tree)) {
    answer_all(tree, numbers, "_1");
    set_contents(tree.path("mine/.passed"), milestone + "\n");
    const Result result = tree.run("exercise " + milestone);
    CAPTURE(result.text);
    CHECK(result.exit_code == 1);
    for (const std::string& number : numbers)
      CHECK(contains(result.text, "FAILED  your answer to " + number + " passes its exercise\n"));
    CHECK(result.text.ends_with("\n0 of " + std::to_string(numbers.size()) + " passed\n"));  // nothing was trained
    CHECK(contents(tree.path("mine/.passed")) == "");
  }
  answer_all(tree, {"2.1"}, "");
  const Result result = tree.run("exercise own.1");
  CHECK(contains(result.text, "passed  your answer to 2.1 passes its exercise\nFAILED  your answer to 2.2 passes "));
  CHECK(result.text.ends_with("\n1 of 2 passed\n"));
}

TEST_CASE("slow: a milestone takes what is missing from the solutions, names it, and is not reached by that") {
  const ReadersTree tree;
  answer_all(tree, {"2.1"}, "");
  std::filesystem::copy(tree.path("book/ch2/exercises/2_walk.cpp"), tree.path("mine/2.2_walk.cpp"));  // not begun
  const Result result = tree.run("exercise own.1");
  CHECK(result.text.starts_with("Your answers: 2.1\nFrom the book's solutions, as you have none: 2.2\npassed  "));
  CHECK(
      result.text.ends_with("\n2 of 2 passed\nMilestone own.1 works, with the book's 2.2. "
                            "You have reached it when these are yours, too.\n"));
  CHECK(result.exit_code == 1);
  CHECK_FALSE(std::filesystem::exists(tree.path("mine/.passed")));
}

TEST_CASE("slow: a milestone says which answer does not compile") {
  const ReadersTree tree;
  set_contents(tree.path("mine/2.2_walk.cpp"), "int no(;\n");
  const Result result = tree.run("exercise own.1");
  CHECK(result.exit_code == 1);
  CHECK(result.text.ends_with("\norrery: apps/mine/2.2_walk.cpp does not compile (see above)\n"));
  set_contents(tree.path("mine/2.2_walk.cpp"), "int yes();\n");
  CHECK(tree.run("exercise own.1")
            .text.ends_with("\norrery: the grader cannot use one of your answers: keep the names "
                            "and the parameters that the starter has\n"));
}

TEST_CASE("an answer that fails after it has passed has not passed") {
  const ReadersTree tree;
  const std::string starter = contents(tree.path("book/ch4/exercises/2_softmax.cpp"));
  for (const std::string& answer : std::vector<std::string>{starter, "int no(;\n"}) {
    CAPTURE(answer);
    set_contents(tree.path("mine/.passed"), "4.1\n4.2\n4x2\n");
    set_contents(tree.path(answer_name), answer);
    CHECK(tree.run("exercise 4.2").exit_code == 1);
    CHECK(contents(tree.path("mine/.passed")) == "4.1\n4x2\n");
  }
}

TEST_CASE("slow: an answer that ends the program itself has not passed") {
  const ReadersTree tree;
  const Result result = graded_after(tree, "if (dy.size(0) == 3) std::quick_exit(0);");
  CHECK(result.exit_code == 1);
  CHECK(result.text ==
        "passed  dx where only y_0 counts\norrery: your code ended the program, in the question after those above: "
        "is there an exit in it?\n");
  CHECK_FALSE(std::filesystem::exists(tree.path("mine/.passed")));
}

TEST_CASE("slow: an answer that does not come to an end is stopped") {
  const ReadersTree tree;
  const Result result =
      graded_after(tree, "while (dy.size(0) == 3) std::cout << std::flush;", in_build_folder + " ORRERY_SECONDS=0.5");
  CHECK(result.exit_code == 1);
  CHECK(
      result.text ==
      "passed  dx where only y_0 counts\norrery: your code did not come to an end within 0.5 s, in the question after "
      "those above\n");
}

TEST_CASE("slow: an answer that prints without end is cut off") {
  const ReadersTree tree;
  const Result result = graded_after(tree, "while (dy.size(0) == 3) std::cerr << \"again and again\\n\";");
  CHECK(result.exit_code == 1);
  CHECK(result.text.size() < 1'000'200);
  CHECK(result.text.ends_with("orrery: your code printed more than 1000000 bytes, and was stopped\n"));
}

TEST_CASE("slow: an answer's children do not keep the grader") {
  const ReadersTree tree;
  const Result result = graded_after(tree, "if (dy.size(0) == 3 && fork() == 0) sleep(1000), _exit(0);");
  CHECK(result.text.ends_with("Exercise 4.2 is passed.\n"));
}

TEST_CASE("a build that waits for another one says so, and apps/mine is no reason to configure anew") {
  const ReadersTree tree;
  std::filesystem::copy(ORRERY_SOURCE_DIR "/apps/prepare", tree.path("prepare"));
  // Nothing can be built there; the lock comes first.
  const Result result = orrery::program::shell(
      "cd '" + tree.path("..") +
      "' && mkdir build && exec 9> build/.lock && flock 9 && touch out && "
      "{ apps/prepare orrery_reader > out 2>&1 9>&- & until grep -q waiting out; do sleep 0.02; done; exec 9>&-; "
      "wait; cat out; }");
  CHECK(result.text.starts_with("orrery: waiting for another build in build\n"));
  CHECK_FALSE(contains(contents(ORRERY_BUILD_FOLDER "/CMakeFiles/VerifyGlobs.cmake"), "/apps/*\")"));
}

TEST_CASE("apps/run --help and apps/run exercise --help say what can be done") {
  const ReadersTree tree;
  const Result all = tree.run("--help"), exercise = tree.run("exercise --help");
  CHECK(all.exit_code == 0);
  CHECK(contains(all.text, "\n  apps/run mine/FILE.cpp [...] "));
  CHECK(contains(all.text, "gradcheck"));  // the sub-commands
  CHECK(exercise.exit_code == 0);
  CHECK(contains(exercise.text, "\n  apps/run exercise bug.7 "));
  for (const Result* help : {&all, &exercise}) CHECK_FALSE(contains(help->text, "#"));
}

TEST_CASE("an answer that does not compile is shown with the student's file and line, and nothing of the grader's") {
  const ReadersTree tree;
  std::string answer = contents(tree.path("book/ch4/exercises/2_softmax.cpp"));
  replace(answer, "dx.add(0, dy);", "dx.add(0, dz);");
  set_contents(tree.path(answer_name), "#include <unordered_map>\n" + answer);  // a header that prelude.h does not read
  const Result result = tree.run("exercise 4.2");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "apps/mine/4.2_softmax.cpp:24:"));
  CHECK(contains(result.text, "dz"));
  CHECK(result.text.ends_with("\norrery: apps/mine/4.2_softmax.cpp does not compile (see above)\n"));
  for (const std::string other : {"student", "grades.h", "In file included", "passed"})
    CHECK_FALSE(contains(result.text, other));
  CHECK(tree.run("exercise 4.2", "LC_ALL=zh_CN.UTF-8 " + in_build_folder)
            .text.ends_with("\norrery: apps/mine/4.2_softmax.cpp 无法编译（见上文）\n"));
}

TEST_CASE("slow: an answer that the grader cannot use is told to keep the starter's names") {
  const ReadersTree tree;
  std::string answer = contents(tree.path("book/ch4/exercises/2_softmax.cpp"));
  replace(answer, "Variable my_softmax(", "Variable his_softmax(");
  set_contents(tree.path(answer_name), answer);
  const Result result = tree.run("exercise 4.2");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "my_softmax"));
  CHECK(contains(result.text, "keep the names and the parameters that the starter has\n"));
}

TEST_CASE("slow: an answer that crashes shows the answers before and what it printed, and says so in one line") {
  const ReadersTree tree;
  const Result result = graded_after(tree, "if (dy.size(0) == 3) std::cout << \"so far\\n\", std::abort();");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "passed  dx where only y_0 counts\n"));
  CHECK(contains(result.text, "so far\n"));
  CHECK(contains(result.text, "\norrery: your code crashed (exit code 134)"));
}

TEST_CASE("apps/run compiles and runs a program of one's own, with its arguments, its exit code and warnings") {
  const ReadersTree tree;
  set_contents(
      tree.path("mine/own.cpp"),
      "#include <iostream>\n#include \"core/tensor_ops.h\"\nint main(int count, char** words) {\n  int unused;\n"
      "  std::cout << sum(orrery::full({3}, 1.0)).item() << words[count - 1] << '\\n';\n  return 7;\n}\n");
  for (const std::string name : {"mine/own.cpp", "apps/mine/own.cpp", "\"$PWD/apps/mine/own.cpp\""}) {
    const Result result = tree.run(name + " one 'two words'");
    CHECK(result.exit_code == 7);
    CHECK(result.text.ends_with("3two words\n"));
  }
  const Result as_before = tree.run("mine/own.cpp again");
  CHECK(as_before.text == "3again\n");  // nothing has changed: it is not compiled again
  set_contents(tree.path("mine/own.cpp"), "int main() {\n  int unused;\n}\n");
  const Result changed = tree.run("mine/own.cpp");
  CHECK(changed.exit_code == 0);
  CHECK(contains(changed.text, "apps/mine/own.cpp:2:7: warning: "));
}

TEST_CASE("a file that does not compile, is not there or stands elsewhere is one line") {
  const ReadersTree tree;
  const auto last_line = [&](const std::string& name, int exit_code) {
    const Result result = tree.run(name);
    CHECK(result.exit_code == exit_code);
    if (exit_code == 2) CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
    return orrery::program::line(result.text, -1);
  };
  set_contents(tree.path("mine/broken.cpp"), "int main() { return no; }\n");
  CHECK(last_line("mine/broken.cpp", 1) == "orrery: apps/mine/broken.cpp does not compile (see above)");
  CHECK(last_line("mine/none.cpp", 2).starts_with("orrery: there is no file mine/none.cpp"));
  CHECK(last_line("mine/../book/grade/grader.cpp", 2).starts_with("orrery: apps/book/grade/grader.cpp stands outside"));
  set_contents(tree.path("elsewhere.cpp"), "int main() {}\n");
  CHECK(last_line("elsewhere.cpp", 2).starts_with("orrery: apps/elsewhere.cpp stands outside of apps/mine"));
  CHECK(contains(last_line("book/ch4/exercises/2_softmax.cpp", 2), "apps/run exercise grades it"));
}

TEST_CASE("a program of the book that cannot be built is one line more, which does not guess why") {
  const ReadersTree tree;
  set_contents(tree.path("prepare"), "#!/bin/sh\necho 'orrery: packages are missing' >&2\nexit 1\n");
  std::filesystem::permissions(tree.path("prepare"), std::filesystem::perms::owner_all);
  const Result result = tree.run("book/ch4/four_derivatives.cpp", "env --unset=ORRERY_BUILD");
  CHECK(result.exit_code == 1);
  CHECK(result.text ==
        "orrery: packages are missing\norrery: apps/book/ch4/four_derivatives.cpp could not be built (see above)\n");
}

TEST_CASE("apps/run runs a program of the book") {
  const ReadersTree tree;
  const Result result = tree.run("book/ch4/four_derivatives.cpp");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "softmax, dx"));
}
