// Chapter 0. Every chapter program has its question and its answer; every exercise has its starter, grader, solution
// and wrong answers.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

// Where a chapter's programs stand.
std::string folder_of(int chapter) { return "apps/book/ch" + std::to_string(chapter); }

Sources examples() {
  Sources result;
  std::copy_if(tree().begin(), tree().end(), std::back_inserter(result), [](const Source& source) {
    return source.folder().starts_with("apps/book/ch") && !source.folder().ends_with("/exercises");
  });
  return result;
}

// What is missing in a chapter program's name, header or length.
Words violations(const Source& example) {
  Words found;
  if (example.folder() != folder_of(example.chapter)) found.push_back(example.at(0) + "not the chapter of its folder");
  constexpr size_t most_lines = 85;
  if (example.lines.size() > most_lines) found.push_back(example.at(most_lines) + "too long for one look");
  Words wanted{"// Question: ", "// Answer: "};
  for (size_t i = 1; i < example.lines.size() && example.lines[i].starts_with("//") && !wanted.empty(); ++i)
    if (example.lines[i].starts_with(wanted[0])) wanted.erase(wanted.begin());
  if (!wanted.empty()) found.push_back(example.at(0) + "the header has no \"" + wanted[0] + "\", or not in its place");
  return found;
}

bool has_line(const Source& source, const std::string& text) {
  return std::any_of(source.lines.begin(), source.lines.end(), [&](const std::string& line) {
    return text.ends_with(" ") ? line.starts_with(text) : line == text;
  });
}

bool says(const Source& source, const std::string& text) {
  return std::any_of(source.lines.begin(), source.lines.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

// What a file of an exercise may include: what prelude.h includes, since it is read inside a namespace.
Words include_problems(const Source& source, const Source& prelude) {
  Words found;
  for (size_t i = 0; i < source.lines.size(); ++i)
    if (source.lines[i].starts_with("#") && !has_line(prelude, source.lines[i]))
      found.push_back(source.at(i) + source.lines[i] + " does not stand in " + prelude.path);
  return found;
}

// A starter "apps/book/ch4/exercises/2_softmax.cpp", and the files that belong to it; a program with a mistake,
// "apps/book/bugs/7.cpp", and its.
class ExerciseFiles {
 public:
  explicit ExerciseFiles(const Sources& sources) : sources_(sources) {}

  Words violations() {
    for (const Source& source : sources_) {
      const bool program = source.path.ends_with(".cpp");
      if (program && source.folder().ends_with("/exercises")) check_exercise(source);
      if (program && source.folder() == "apps/book/bugs") check_bug(source);
    }
    for (const Source& source : sources_) {
      const bool one = source.folder().ends_with("/exercises") || source.path.starts_with(solutions) ||
                       source.path.starts_with(wrong_answers);
      if (one && !belonging_.contains(source.path)) found_.push_back(source.path + " belongs to no exercise");
    }
    return found_;
  }

 private:
  inline static const std::string solutions = "apps/book/solutions/", wrong_answers = "tests/apps/book/wrong/";

  void check_exercise(const Source& starter) {
    const std::string chapter = starter.folder().substr(std::string("apps/book/ch").size(), 1), stem = starter.stem();
    const std::string number = chapter + "." + stem.substr(0, stem.find('_')), name = chapter + "." + stem;
    const std::string head = "// Chapter " + chapter + ". ";
    if (!starter.lines[0].ends_with(".")) found_.push_back(starter.at(0) + "the title does not end with a point");
    need(starter.path, {head + "Exercise " + number + ": ", "// Grade it:  apps/run exercise " + number, "YOUR CODE"});
    need(starter.folder() + "/" + stem + "_grade.h",
         {head + "Grades exercise " + number + ".", "void grade(Grader& g) {"});
    need(solutions + name + ".cpp", {head + "Solution of exercise " + number + ": "});
    for (const std::string which : {"_1.cpp", "_2.cpp"})
      need(wrong_answers + name + which, {head + "A wrong answer to exercise " + number + ": ", "// Expect: "});
    for (char which = '3'; find_source(sources_, wrong_answers + name + "_" + which + ".cpp"); ++which)
      need(wrong_answers + name + "_" + which + ".cpp", {"// Expect: "});
    const Source* solution = find_source(sources_, solutions + name + ".cpp");
    if (solution && says(*solution, "YOUR CODE")) found_.push_back(solution->at(0) + "has a blank");
  }

  void check_bug(const Source& bug) {
    belonging_.insert(solutions + "bug_" + bug.stem() + ".cpp");
    const std::string wrong_repair = wrong_answers + "bug_" + bug.stem() + "_";
    for (char which = '1'; const Source* repair = find_source(sources_, wrong_repair + which + ".cpp"); ++which) {
      belonging_.insert(repair->path);
      if (!has_line(*repair, "// Expect: ")) found_.push_back(repair->at(0) + "has no \"// Expect: \"");
    }
  }

  // The file must be there, with these comments as its lines and these words in its code.
  void need(const std::string& path, const Words& wanted) {
    belonging_.insert(path);
    const Source* source = find_source(sources_, path);
    if (!source) {
      found_.push_back(path + " does not exist");
      return;
    }
    for (const std::string& text : wanted) {
      const bool there = text.starts_with("//") ? has_line(*source, text) : says(*source, text);
      if (!there) found_.push_back(source->at(0) + "has no \"" + text + "\"");
    }
    const Source* prelude = find_source(sources_, "apps/book/grade/prelude.h");
    const Words problems = include_problems(*source, *prelude);
    found_.insert(found_.end(), problems.begin(), problems.end());
  }

  const Sources& sources_;
  std::set<std::string> belonging_;
  Words found_;
};

Words exercise_violations(const Sources& sources) { return ExerciseFiles(sources).violations(); }

}  // namespace

TEST_CASE("chapters 0 to 9 have their programs, with question and answer") {
  std::set<int> chapters;
  Words found;
  for (const Source& example : examples()) {
    chapters.insert(example.chapter);
    const Words here = violations(example);
    found.insert(found.end(), here.begin(), here.end());
  }
  CHECK(report(found) == "");
  for (int chapter = 0; chapter <= 9; ++chapter) CHECK(chapters.contains(chapter));
}

TEST_CASE("a program without an answer, or in another chapter's folder, is found") {
  const std::string head = "// Chapter 3. A.\n// Question: a?\n";
  const auto violations_of = [&](int chapter, const std::string& rest) {
    return violations(make_source(folder_of(chapter) + "/a.cpp", head + rest)).size();
  };
  CHECK(violations_of(3, "// Answer: b.\n// Read next: d\n") == 0);
  CHECK(violations_of(3, "// Read next: d\n") == 1);
  CHECK(violations_of(3, "\n// Answer: b.\n") == 1);
  CHECK(violations_of(4, "// Answer: b.\n// Read next: d\n") == 1);
  CHECK(violations_of(3, "// Answer: b.\n" + std::string(83, '\n')) == 1);
}

TEST_CASE("every exercise has a starter, a grader, a solution and two wrong answers") {
  CHECK(report(exercise_violations(tree())) == "");
}

TEST_CASE("an exercise with a part missing, or a part without an exercise, is found") {
  const std::string head = "// Chapter 4. ", blank = "// YOUR CODE\n";
  const std::vector<std::pair<std::string, std::string>> files{
      {"apps/book/grade/prelude.h", "#include <cmath>\n"},
      {"apps/book/ch4/exercises/2_a.cpp",
       head + "Exercise 4.2: a.\n// Grade it:  apps/run exercise 4.2\n#include <cmath>\n" + blank},
      {"apps/book/ch4/exercises/2_a_grade.h", head + "Grades exercise 4.2.\nvoid grade(Grader& g) {\n}\n"},
      {"apps/book/solutions/4.2_a.cpp", head + "Solution of exercise 4.2: a.\n"},
      {"tests/apps/book/wrong/4.2_a_1.cpp", head + "A wrong answer to exercise 4.2: b.\n// Expect: c\n"},
      {"tests/apps/book/wrong/4.2_a_2.cpp", head + "A wrong answer to exercise 4.2: d.\n// Expect: e\n"}};
  const auto report_with = [&](const std::string& path, const std::string& text) {
    Sources sources;
    bool replaced = false;
    for (const auto& [file, standing] : files) {
      replaced |= file == path;
      if (file != path || !text.empty()) sources.push_back(make_source(file, file == path ? text : standing));
    }
    if (!replaced && !path.empty()) sources.push_back(make_source(path, text));
    return report(exercise_violations(sources));
  };
  CHECK(report_with("", "") == "");
  for (size_t i = 2; i < files.size(); ++i)
    CHECK(report_with(files[i].first, "") == "\n" + files[i].first + " does not exist");
  const std::string starter = files[1].first, solution = files[3].first, wrong = files[4].first;
  CHECK(report_with(starter, head + "Exercise 4.2: a\n// Grade it:  apps/run exercise 4.2\n" + blank) ==
        "\n" + starter + ":1: the title does not end with a point");
  CHECK(report_with(starter, head + "Exercise 4.3: a.\n// Grade it:  apps/run exercise 4.3\n") ==
        "\n" + starter + ":1: has no \"// Chapter 4. Exercise 4.2: \"\n" + starter +
            ":1: has no \"// Grade it:  apps/run exercise 4.2\"\n" + starter + ":1: has no \"YOUR CODE\"");
  CHECK(report_with(solution, files[3].second + blank) == "\n" + solution + ":1: has a blank");
  CHECK(report_with(solution, files[3].second + "#include <regex>\n") ==
        "\n" + solution + ":2: #include <regex> does not stand in apps/book/grade/prelude.h");
  CHECK(report_with(wrong, head + "A wrong answer to exercise 4.2: b.\n") ==
        "\n" + wrong + ":1: has no \"// Expect: \"");
  for (const std::string path :
       {"apps/book/solutions/4.3_b.cpp", "tests/apps/book/wrong/4.2_b_1.cpp", "apps/book/ch4/exercises/2_b_grade.h",
        "apps/book/solutions/bug_3.cpp", "tests/apps/book/wrong/bug_3_1.cpp"})
    CHECK(report_with(path, "//\n") == "\n" + path + " belongs to no exercise");
}
