// Chapter 0. The texts of the book, apps/book/ch4/README.md and in Chinese README.zh.md, and a chapter's other parts,
// such as apps/book/ch5/optimisers.md: they say what the programs print, what the files hold and what the commands do.
// Each program runs once.
#include "tests/apps/book/text_rules.h"

#include <doctest/doctest.h>

#include "tests/apps/run_program.h"

using namespace orrery::style;

namespace {

bool stands_in_tree(const std::string& path) { return std::filesystem::exists(root / path); }

std::string help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  if (!known.contains(command)) {
    const orrery::program::Result result = orrery::program::run("'" + command + "' --help");
    known[command] = result.exit_code == 0 ? result.text : "";
  }
  return known[command];
}

std::string folder_of_chapter(int number) { return "apps/book/ch" + std::to_string(number); }

// What every program of a chapter prints, by its name. One that fails is an error.
std::map<std::string, Words> run_programs(int number) {
  std::map<std::string, Words> printed;
  for (const Source& source : tree()) {
    if (source.folder() != folder_of_chapter(number) || !source.path.ends_with(".cpp")) continue;
    const std::string program = "ch" + std::to_string(number) + "_" + source.stem();
    const orrery::program::Result result =
        orrery::program::shell("'" ORRERY_BOOK_FOLDER "/" + program + "' 2>/dev/null");
    CAPTURE(source.path);
    CHECK(result.exit_code == 0);
    printed[source.stem()] = split_lines(result.text);
  }
  return printed;
}

std::map<std::string, std::string> exercises_in_folder(int number) {
  static const std::regex title("^// Chapter [0-9]+\\. Exercise [0-9.]+: (.*)\\.$");
  std::map<std::string, std::string> exercises;
  for (const Source& source : tree()) {
    if (source.folder() != folder_of_chapter(number) + "/exercises" || !source.path.ends_with(".cpp")) continue;
    const Words titles = matches_in(source.lines.at(0), title);
    const std::string stem = source.stem();
    exercises[std::to_string(number) + "." + stem.substr(0, stem.find('_'))] = titles.empty() ? "" : titles[0];
  }
  return exercises;
}

Chapter make_chapter(int number, const std::string& path, const Words& lines) {
  return {number, path, lines, parse_text(lines), {}, {}};
}

void check_chapter(int number) {
  const std::map<std::string, Words> printed = run_programs(number);
  std::vector<Chapter> english, chinese;
  for (const std::string& text : texts_of_chapter(number)) {
    for (const std::string& path : {text, in_chinese(text)}) {
      CAPTURE(path);
      REQUIRE(stands_in_tree(path));
      Chapter part = make_chapter(number, path, lines_of(path));
      part.printed = printed;
      part.exercises = exercises_in_folder(number);
      (part.chinese() ? chinese : english).push_back(part);
    }
  }
  REQUIRE_FALSE(english.empty());
  Words found;
  const auto add = [&](const Words& problems) { found.insert(found.end(), problems.begin(), problems.end()); };
  for (const std::vector<Chapter>& parts : {english, chinese}) {
    add(measured_problems(parts));
    add(exercise_problems(parts));
    for (const Chapter& part : parts)
      for (const Words& problems : {excerpt_problems(part, lines_of), output_problems(part), number_problems(part),
                                    length_problems(part), formula_problems(part), link_problems(part, stands_in_tree),
                                    command_problems(part, stands_in_tree, help_of)})
        add(problems);
  }
  for (size_t i = 0; i < english.size(); ++i) add(translation_problems(chinese[i], english[i]));
  CHECK(report(found) == "");
}

// A text as chapter 4, whose one program prints y = 0.25, dx = -0.50 and 16777216.
Chapter chapter_saying(const std::string& text, const std::string& file = "README.md") {
  Chapter chapter = make_chapter(4, folder_of_chapter(4) + "/" + file, split_lines(text));
  chapter.printed = {{"tape", {"y = 0.25", "dx = -0.50, eps 1.5e-09", "16777216 ones", "done"}}};
  chapter.exercises = {{"4.1", "matmul"}, {"4.2", "softmax's backward"}, {"4.3", "layer norm"}};
  return chapter;
}

// Violations without their place.
std::string without_place(const Words& problems) {
  Words found;
  static const std::regex place("^[^ ]*: ");
  for (const std::string& problem : problems) found.push_back(std::regex_replace(problem, place, ""));
  return report(found);
}

}  // namespace

#define ORRERY_CHAPTER(n) \
  TEST_CASE("book: chapter " #n ": its programs answer, and its text says what is so") { check_chapter(n); }
ORRERY_CHAPTER(0)
ORRERY_CHAPTER(1)
ORRERY_CHAPTER(2)
ORRERY_CHAPTER(3)
ORRERY_CHAPTER(4)
ORRERY_CHAPTER(5)
ORRERY_CHAPTER(6)
ORRERY_CHAPTER(7)
ORRERY_CHAPTER(8)
ORRERY_CHAPTER(9)
ORRERY_CHAPTER(10)
ORRERY_CHAPTER(11)

TEST_CASE("the appendix, the page for teachers and that on bugs say in Chinese what they say in English") {
  const auto read = [](const std::string& file) {
    return make_chapter(0, "apps/book/" + file, lines_of("apps/book/" + file));
  };
  for (const std::string text : {"appendix", "teachers", "bugs/README"})
    CHECK(report(translation_problems(read(text + ".zh.md"), read(text + ".md"))) == "");
}

TEST_CASE("an excerpt that its file does not have is found") {
  const auto problems = [](const std::string& text) {
    return without_place(excerpt_problems(chapter_saying(text), [](const std::string& path) {
      return path == "autograd/engine.cpp" ? Words{"int a;", "int b;", "  int c;"} : Words{"int d;"};
    }));
  };
  const std::string engine = "See [engine.cpp](../../../autograd/engine.cpp).\n";
  CHECK(problems(engine + "```cpp\nint a;\n// ...\n  int c;\n```\nand\n```cpp\nint b;\n```\n") == "");
  CHECK(problems("[tape.cpp](tape.cpp) [engine.h](../../../autograd/engine.h)\n```cpp\nint d;\n```\n") == "");
  CHECK(problems(engine + "```cpp\nint b;\nint a;\n```\n") ==
        "\nautograd/engine.cpp does not have, in this order: int a;");
  CHECK(problems(engine + "```cpp\nint c;\n```\n") == "\nautograd/engine.cpp does not have, in this order: int c;");
  CHECK(problems("```cpp\nint a;\n```\n") == "\nno link to a source file stands before this excerpt");
  CHECK(problems(engine + "- in a list\n  ```cpp\n  int b;\n    int c;\n  ```\n") == "");
  CHECK(problems(engine + "```cpp\nint a;\n  int c;\n```\n") ==
        "\nautograd/engine.cpp has lines that are left out without \"...\" in: int a;");
}

TEST_CASE("output that no program printed is found") {
  const auto problems = [](const std::string& text) { return without_place(output_problems(chapter_saying(text))); };
  const std::string ran = "It prints (`apps/run book/ch4/tape.cpp`):\n";
  CHECK(problems(ran + "```text\ny = 0.25\n...\ndone\n```\n") == "");
  CHECK(problems("```sh\napps/run book/ch4/tape.cpp\n```\n```text\ndone\n```\n") == "");
  CHECK(problems(ran + "```text\ny = 0.26\n```\n") == "\nthe output of tape does not have, in this order: y = 0.26");
  CHECK(problems(ran + "```text\ndone\ny = 0.25\n```\n") ==
        "\nthe output of tape does not have, in this order: y = 0.25");
  CHECK(problems(ran + "```text\ny = 0.25\ndone\n```\n") ==
        "\nthe output of tape has lines that are left out without \"...\" in: y = 0.25");
  const std::string nameless = "\nno program of this chapter is named before this output: `apps/run book/ch4/NAME.cpp`";
  CHECK(problems("```text\ny = 0.25\n```\n") == nameless);
  CHECK(problems("`apps/run book/ch3/tape.cpp`\n```text\ny = 0.25\n```\n") == nameless);
  CHECK(problems("```\ny = 0.25\n```\n") == "\na block is cpp, text or sh, not ''");
}

TEST_CASE("decimals are found as they are written") {
  CHECK(decimals_in("0.5, -0.25 and x-1.5; (-2.5) 1-3.5 1e-9 2.5e-3 7. v1.5 3.2.1 5.") ==
        Words{"0.5", "-0.25", "1.5", "-2.5", "3.5", "2.5e-3"});
  CHECK(decimals_in("\u22120.5 $-0.75$ 10.0\u4e2a 0.5.") == Words{"-0.5", "-0.75", "10.0", "0.5"});
  CHECK(decimals_in("") == Words{});
}

TEST_CASE("long integers are found however they are written") {
  CHECK(long_integers_in("262,144 and $65{,}536$, 1024, (1000, -2048), 16,384-token, e^{1000}, 1/1024, 2017.") ==
        Words{"262144", "65536", "1024", "1000", "2048", "16384", "1000", "1024", "2017"});
  CHECK(long_integers_in("\u4e3a262,144\u4e2a 137,858,491,849 3,145,728") ==
        Words{"262144", "137858491849", "3145728"});
  CHECK(long_integers_in("512, 999 0.0625 1234.5 x1000 f_1000 1,2,3 (0,100)") == Words{});
}

TEST_CASE("a number that no program prints is found, in prose, tables and formulas") {
  const auto problems = [](const std::string& text) { return without_place(number_problems(chapter_saying(text))); };
  CHECK(problems("y is 0.25, dx -0.50 or 0.50 down; 1.5 \\cdot 10^{-9}, 1.5e-09.\n") == "");
  const std::string missing = "\nno program of this chapter prints ";
  CHECK(problems("y is 0.26.\n") == missing + "0.26");
  CHECK(problems("y is -0.25.\n") == missing + "-0.25");
  CHECK(problems("dx is 0.51, 0.50, 0.01 or -0.5, a half.\n") == missing + "0.51");
  CHECK(problems("$16/25 = 0.64$, $(16/25)^{10} = 0.0115$ \u548c (1/3)^2 = 0.11, $2/3 = 0.66$\n") == missing + "0.66");
  CHECK(problems("| x | 0.75 |\n$$\n\\frac{0.85}{2}\n$$\n") == missing + "0.75" + missing + "0.85");
  CHECK(
      problems(
          "> The paper says 0.98.\n`0.97` [0.96](a_0.95.md) PyTorch 2.13, sections 3.2 and 5.4, \u7ec3\u4e60 4.7\n") ==
      "");
  CHECK(problems("## Exercises\n### 4.2 softmax's backward\n- **4.7** none\n| 4.8 |\n") == "");
  CHECK(problems("### 4.2 softmax's backward\n") == missing + "4.2");
  CHECK(problems("```text\n0.93\n```\n") == "");
  CHECK(problems("It counts 16,777,216 ones, of 20,000 (Su et al. 2021), $16{,}777{,}216$ and 16777216.\n") == "");
  CHECK(problems("It counts 16,777,217 ones.\n") == missing + "16777217");
  CHECK(problems("| 12,800 | 2021 |\n") == missing + "12800" + missing + "2021");
}

TEST_CASE("a chapter without a measured line is found, and a text without its counts") {
  Chapter chapter = chapter_saying("It moves 16,777,216 bytes in 5 ms.\n");
  CHECK(without_place(measured_problems({chapter})) == "\n0 programs end with a line \"measured: ...\"");
  chapter.printed["bytes"] = {"y = 1", "measured: 16777216 bytes in 4.875 ms, 1e+03 GB/s", ""};
  CHECK(without_place(measured_problems({chapter})) == "");
  chapter.printed["bytes"] = {"measured: 16777216 bytes and 4096 rows in 12 ms"};
  CHECK(without_place(measured_problems({chapter})) == "\ndoes not say what was measured: 4096");
  chapter.printed["more"] = {"measured: 1 ms"};
  CHECK(without_place(measured_problems({chapter})) == "\n2 programs end with a line \"measured: ...\"");
}

TEST_CASE("a text that is too long is found; what is folded away does not count") {
  const std::string lines(299, '\n'), folded = "<details><summary>Answer</summary>\n\n2.\n</details>\n";
  CHECK(report(length_problems(chapter_saying(folded + lines + "**Check yourself.** 1 + 1?\n" + folded + "end\n"))) ==
        "");
  CHECK(report(length_problems(chapter_saying(lines + folded + "\nend\n"))) ==
        "\napps/book/ch4/README.md:300: 301 lines");
}

TEST_CASE("a formula in an answer that is plain text is found, and none elsewhere") {
  const auto problems = [](const std::string& answer) {
    return without_place(formula_problems(
        chapter_saying("a_b\n<summary>Answer</summary>\n" + answer + "\n</details>\n<summary>Hint</summary>x^2\n")));
  };
  CHECK(problems("$x^2 = \\sqrt{2}$, `a * b`, 1/2, -1, a - b, [0, 2], $d_k\n+ 1$") == "");
  CHECK(problems("2^24, sqrt(2), d_k\n* 2") == "\nplain formula: 2^\nplain formula: sqrt(\nplain formula: d_k");
}

TEST_CASE("a command that there is not is found") {
  const auto problems = [](const std::string& text) {
    return without_place(command_problems(
        chapter_saying("```sh\n" + text + "```\n"),
        [](const std::string& path) {
          return path == "tests/run" || path == "apps/book/ch4/tape.cpp" || path == "apps/book/bugs/7.cpp";
        },
        [](const std::string& command) { return std::string(command == "toy" ? "--task NAME  --seed NUMBER" : ""); }));
  };
  CHECK(
      problems(
          "apps/run toy --task sort \\\n  --seed 2  # sorts\nOMP_NUM_THREADS=1 apps/run toy | tests/run\napps/run\n") ==
      "");
  CHECK(problems("apps/run exercise\napps/run exercise 4.2\napps/run book/ch4/tape.cpp\napps/run mine/a.cpp\n") == "");
  CHECK(problems("apps/run toys\n") == "\nthere is no sub-command toys");
  CHECK(problems("apps/run toy --tusk sort\n") == "\ntoy has no option --tusk");
  CHECK(problems("apps/run exercise 4.9\n") == "\nthere is no exercise 4.9");
  CHECK(problems("apps/run exercise bug.7\n") == "");
  CHECK(problems("apps/run exercise bug.8\n") == "\nthere is no exercise bug.8");
  CHECK(problems("apps/run book/ch4/type.cpp\n") == "\nthere is no program apps/book/ch4/type.cpp");
  CHECK(problems("tests/ran\n") == "\nthere is no command tests/ran");
}

TEST_CASE("exercises that are listed and not there, or there and not listed, are found") {
  const auto problems = [](const std::string& text, const std::string& file = "README.md") {
    return without_place(exercise_problems({chapter_saying(text, file)}));
  };
  const std::string two = "## Exercises\n### 4.1 Matmul\n- **4.3 layer norm** (hard)\n";
  CHECK(problems(two + "| 4.2 | `softmax`'s backward |\n") == "");
  CHECK(problems(two) == "\nexercise 4.2 is not listed");
  CHECK(problems(two + "### 4.2 softmax\n") == "\nexercise 4.2 is called \"softmax's backward\"");
  CHECK(problems(two + "### 4.2 softmax's backward\n### 4.4 more\n") == "\nthere is no exercise 4.4");
  CHECK(problems("4.2 softmax's backward\n" + two) == "\nexercise 4.2 is not listed");
  const std::string task = "<details><summary>\u9898\u76ee</summary>\n",
                    chinese = "## \u7ec3\u4e60\n### \u7ec3\u4e60 4.1\n" + task + "### 4.2 a\n" + task + "### 4.3 b\n";
  CHECK(problems(chinese + task, "README.zh.md") == "");
  CHECK(problems(chinese, "README.zh.md") == "\nit has 2 tasks");
  const std::string three = two + "| 4.2 | softmax's backward | [starter](exercises/2_softmax.cpp) |\n";
  CHECK(problems(three + "<summary>Task</summary>\n") == "\nit has 1 tasks\nit links 1 starters");
}
