// Chapter 0. The rules for the texts of the book: what a text says is what programs print, files hold and commands do.
// Each rule gives its violations, one a line.
#pragma once

#include "tests/text.h"

namespace orrery::style {

/// Numbers by which something is called: they come after one of these words. "Exercises 4.1 and 4.2", "PyTorch 2.13",
/// "Su et al. 2021".
inline const std::regex called(
    "(?:[Ee]xercises?|[Hh]ints?|[Ss]ections?|[Cc]hapters?|[Ff]igures?|[Tt]ables?|[Vv]ersions?|PyTorch|OpenBLAS|GCC|[Cc]"
    "lang|"
    "Python|arXiv|et al\\.|等，|§|练习|提示|第|图|表|版本)[ :]?[0-9]+(?:\\.[0-9]+)*(?:(?:, | and | or | to |、| 和 "
    "|和|到)[0-9]+(?:\\.[0-9]+)*)*");

/// A text of a chapter, which may be a part of it.
struct Chapter {
  int number = 0;
  std::string path;  // of the text
  Words lines;
  Text text;
  std::map<std::string, Words> printed;          // by each program, by its name
  std::map<std::string, std::string> exercises;  // number and title: "4.2", "softmax's backward"

  bool chinese() const { return path.ends_with(".zh.md"); }
  std::string folder() const { return path.substr(0, path.rfind('/')); }
  std::string at(size_t line) const { return path + ":" + std::to_string(line) + ": "; }
};

inline std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(" \t") + 1); }

inline bool is_digit(const std::string& text, size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
}

/// Numbers with a decimal point, as written: "0.50", "-1.5e-9". What has two points, such as 3.2.1, is none.
inline Words decimals_in(std::string line) {
  static const std::regex minus("\u2212");
  line = std::regex_replace(line, minus, "-");
  Words found;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!is_digit(line, i) || (i > 0 && (is_word(line[i - 1]) || line[i - 1] == '.'))) continue;
    size_t end = i;
    while (is_digit(line, end)) ++end;
    const bool decimal = end < line.size() && line[end] == '.' && is_digit(line, end + 1);
    if (decimal) ++end;
    while (decimal && is_digit(line, end)) ++end;
    const bool version = decimal && end < line.size() && line[end] == '.' && is_digit(line, end + 1);
    size_t exponent = end + 1;
    if (exponent < line.size() && (line[exponent] == '-' || line[exponent] == '+')) ++exponent;
    if (decimal && !version && line[end] == 'e' && is_digit(line, exponent))
      for (end = exponent; is_digit(line, end);) ++end;
    const bool minus_before = i > 0 && line[i - 1] == '-' && (i < 2 || !(is_word(line[i - 2]) || line[i - 2] == ')'));
    if (decimal && !version) found.push_back((minus_before ? "-" : "") + line.substr(i, end - i));
    while (version && end < line.size() && (is_digit(line, end) || line[end] == '.')) ++end;
    i = end;
  }
  return found;
}

/// Integers of four digits or more, without the commas between their digits: "262,144", "65{,}536" in a formula.
inline Words long_integers_in(const std::string& line) {
  static const std::regex comma_of_formulas("\\{,\\}"), comma(",");
  static const std::regex integer("(?:^|[^0-9A-Za-z_.,])([1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]{4,})(?![0-9]|[.,][0-9])");
  Words found;
  for (const std::string& number : matches_in(std::regex_replace(line, comma_of_formulas, ","), integer))
    found.push_back(std::regex_replace(number, comma, ""));
  return found;
}

/// What a text may say: the long integers of these lines, and their decimals, also without sign and without exponent.
inline std::set<std::string> sayable(const std::map<std::string, Words>& printed) {
  std::set<std::string> numbers;
  for (const auto& [program, lines] : printed) {
    for (const std::string& line : lines) {
      for (const std::string& number : long_integers_in(line)) numbers.insert(number);
      for (const std::string& number : decimals_in(line)) {
        const std::string unsigned_number = number.substr(number[0] == '-');
        for (const std::string& form : {number, unsigned_number}) {
          numbers.insert(form);
          numbers.insert(form.substr(0, form.find('e')));
        }
      }
    }
  }
  return numbers;
}

/// A line without inline code and links.
inline std::string plain(const std::string& line) {
  static const std::regex code("`[^`]*`"), link(R"(!?\[[^\]]*\]\([^)]*\))");
  return std::regex_replace(std::regex_replace(line, code, " "), link, " ");
}

/// "### 4.2 softmax's backward", "- **Exercise 4.2**", "| 4.2 |": the number of the exercise that a line is about.
inline std::string exercise_listed(const std::string& line) {
  static const std::regex listed(R"(^(?:[-#*|[\s]|[0-9]+\. )*(?:Exercise |练习 ?)?([0-9]+\.[0-9]+)(?![.0-9]))");
  std::smatch match;
  return std::regex_search(line, match, listed) ? std::string(match[1]) : "";
}

/// The first line of the section on exercises, and the line after its last.
inline std::pair<size_t, size_t> exercise_section(const Words& prose) {
  const auto heading = [](const std::string& line) { return line.starts_with("## ") || line.starts_with("# "); };
  size_t begin = 0;
  while (begin < prose.size() && !prose[begin].starts_with("## Exercises") && !prose[begin].starts_with("## 练习"))
    ++begin;
  size_t end = std::min(begin + 1, prose.size());
  while (end < prose.size() && !heading(prose[end])) ++end;
  return {begin, end};
}

/// Every decimal and every long integer of prose, tables and formulas, with its line; quotations are the paper's.
inline std::vector<std::pair<std::string, size_t>> numbers_of(const Words& prose) {
  std::vector<std::pair<std::string, size_t>> numbers;
  const auto [begin, end] = exercise_section(prose);
  for (size_t i = 0; i < prose.size(); ++i) {
    const size_t first = prose[i].find_first_not_of(' ');
    if (first == std::string::npos || prose[i][first] == '>') continue;
    std::string line = prose[i];
    const std::string listed = i >= begin && i < end ? exercise_listed(line) : "";
    if (!listed.empty()) line.erase(line.find(listed), listed.size());
    line = std::regex_replace(plain(line), called, " ");
    for (const Words& found : {decimals_in(line), long_integers_in(line)})
      for (const std::string& number : found) numbers.emplace_back(number, i + 1);
  }
  return numbers;
}

/// "..." stands for lines left out; in C++ it is a comment.
inline bool stands_for_others(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin != line.npos && (line.substr(begin) == "..." || line.substr(begin) == "// ...");
}

/// What is wrong with lines quoted from `whole`, "" if nothing: one that it does not have after those before it, or one
/// before which others are left out and nothing says so. Empty lines do not count.
inline std::string quote_problem(const Words& quoted, const Words& whole) {
  const auto is_empty = [](const std::string& line) { return trimmed(line).empty(); };
  std::vector<Words> parts(1);  // between the lines "..."
  Words all, source = whole;
  for (const std::string& line : quoted) {
    if (stands_for_others(line)) {
      parts.emplace_back();
    } else if (!is_empty(line)) {
      parts.back().push_back(line);
      all.push_back(line);
    }
  }
  std::erase_if(source, is_empty);
  if (const std::string missing = missing_line(all, source); !missing.empty())
    return "does not have, in this order: " + missing;
  auto from = source.begin();
  for (const Words& part : parts) {
    const auto found = std::search(from, source.end(), part.begin(), part.end());
    if (found == source.end() && !part.empty()) return "has lines that are left out without \"...\" in: " + part[0];
    from = found + static_cast<std::ptrdiff_t>(part.size());
  }
  return "";
}

/// `read` gives the lines of a file by its path from the root.
inline Words excerpt_problems(const Chapter& chapter, Words (*read)(const std::string&)) {
  Words found;
  for (const Block& block : chapter.text.blocks) {
    if (block.language != "cpp") continue;
    const std::filesystem::path path = (std::filesystem::path(chapter.folder()) / block.linked).lexically_normal();
    const std::string problem = block.linked.empty() ? "" : quote_problem(block.lines, read(path));
    if (block.linked.empty())
      found.push_back(chapter.at(block.line) + "no link to a source file stands before this excerpt");
    else if (!problem.empty())
      found.push_back(chapter.at(block.line) + path.string() + " " + problem);
  }
  return found;
}

inline Words output_problems(const Chapter& chapter) {
  Words found;
  const std::string start = "apps/run book/ch" + std::to_string(chapter.number) + "/";
  for (const Block& block : chapter.text.blocks) {
    const std::string at = chapter.at(block.line);
    if (block.language != "cpp" && block.language != "text" && block.language != "sh")
      found.push_back(at + "a block is cpp, text or sh, not '" + block.language + "'");
    if (block.language != "text") continue;
    const size_t end = block.command.find(".cpp");
    const auto printed = block.command.starts_with(start)
                             ? chapter.printed.find(block.command.substr(start.size(), end - start.size()))
                             : chapter.printed.end();
    if (printed == chapter.printed.end()) {
      found.push_back(at + "no program of this chapter is named before this output: `" + start + "NAME.cpp`");
      continue;
    }
    Words part, whole;
    for (const std::string& line : block.lines) part.push_back(trimmed(line));
    for (const std::string& line : printed->second) whole.push_back(trimmed(line));
    if (const std::string problem = quote_problem(part, whole); !problem.empty())
      found.push_back(at + "the output of " + printed->first + " " + problem);
  }
  return found;
}

/// A digit and zeros, 4000 or 0.01: a size that somebody chose, and no result.
inline bool is_round(const std::string& number) {
  const size_t first = number.find_first_not_of("-0.");
  return first != number.npos && number.find_first_not_of('0', first + 1) == number.npos;
}

/// The right numbers of "16/25 = 0.64" and "(16/25)^5 = 0.107": quotients and their powers, rounded as written.
inline std::set<std::string> quotients_in(const std::string& line) {
  static const std::regex form(R"(([0-9.]+)/([0-9.]+)\)?(?:\^\{?([0-9]+)\}?)? (?:=|\\approx) ([0-9]+\.([0-9]+)))");
  std::set<std::string> right;
  for (std::sregex_iterator at(line.begin(), line.end(), form), end; at != end; ++at) {
    const auto number = [&](size_t i) { return std::stod(at->str(i)); };
    const double value = std::pow(number(1) / number(2), at->length(3) > 0 ? number(3) : 1);
    if (std::fabs(value - number(4)) <= 0.5001 * std::pow(10, -at->length(5))) right.insert(at->str(4));
  }
  return right;
}

inline Words number_problems(const Chapter& chapter) {
  Words found;
  const std::set<std::string> allowed = sayable(chapter.printed);
  for (const auto& [number, line] : numbers_of(chapter.text.prose))
    if (!is_round(number) && !allowed.contains(number) && !quotients_in(chapter.text.prose[line - 1]).contains(number))
      found.push_back(chapter.at(line) + "no program of this chapter prints " + number);
  return found;
}

/// One program of the chapter ends with what it measured. The text says the counts of that line; its times belong to a
/// machine and a moment.
inline Words measured_problems(const std::vector<Chapter>& parts) {
  Words found, measured;
  const Chapter& chapter = parts.at(0);
  for (const auto& [program, lines] : chapter.printed) {
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return !line.empty(); });
    if (last != lines.rend() && last->starts_with("measured: ")) measured.push_back(*last);
  }
  if (measured.size() != 1)
    return {chapter.at(1) + std::to_string(measured.size()) + " programs end with a line \"measured: ...\""};
  std::set<std::string> said;
  for (const Chapter& part : parts)
    for (const auto& [number, line] : numbers_of(part.text.prose)) said.insert(number);
  for (const std::string& count : long_integers_in(measured[0]))
    if (!said.contains(count)) found.push_back(chapter.at(1) + "does not say what was measured: " + count);
  return found;
}

/// Links and pictures; `exists` answers for a path from the root.
inline Words link_problems(const Chapter& chapter, bool (*exists)(const std::string&)) {
  static const std::regex code("`[^`]*`"), target(R"(\]\(([^)\s]+)\))");
  Words found;
  for (size_t i = 0; i < chapter.text.prose.size(); ++i) {
    for (std::string link : matches_in(std::regex_replace(chapter.text.prose[i], code, ""), target)) {
      link.resize(std::min(link.find('#'), link.size()));
      if (link.empty() || link.starts_with("https://")) continue;
      const std::string path = (std::filesystem::path(chapter.folder()) / link).lexically_normal();
      if (path.starts_with("..") || !exists(path)) found.push_back(chapter.at(i + 1) + link + " does not exist");
    }
  }
  return found;
}

/// Formulas in answers that are plain text: x^2, sqrt(2), d_k or a * b outside of inline code and of $...$.
inline Words formula_problems(const Chapter& chapter) {
  static const std::regex typeset("`[^`]*`|\\$[^$]*\\$"), answer("<summary>(?:Answer|答案)</summary>([^<]*)");
  static const std::regex formula("([0-9A-Za-z)]\\^|sqrt\\(|[A-Za-z]_[0-9A-Za-z]|[0-9A-Za-z)] [*+/=] [0-9A-Za-z(])");
  std::string text;
  for (const std::string& line : chapter.text.prose) text += line + ' ';
  Words found;
  for (const std::string& one : matches_in(std::regex_replace(text, typeset, "~"), answer))
    for (const std::string& plain : matches_in(one, formula))
      found.push_back(chapter.at(1) + "plain formula: " + plain);
  return found;
}

/// The commands of a block for the shell, each command of a pipe by itself, without comments and without variables
/// before them.
inline Words commands_of(const Block& block) {
  static const std::regex comment("(^|\\s)#.*"), variable("^(?:[A-Z_]+=\\S* )+"), separator(" *(?:&&|\\||;) *");
  Words commands;
  std::string open;
  for (const std::string& written : block.lines) {
    const std::string line = open + trimmed(std::regex_replace(written, comment, ""));
    open = line.ends_with("\\") ? line.substr(0, line.size() - 1) : "";
    if (line.empty() || !open.empty()) continue;
    for (std::sregex_token_iterator at(line.begin(), line.end(), separator, -1), end; at != end; ++at)
      commands.push_back(std::regex_replace(at->str(), variable, ""));
  }
  return commands;
}

/// What is wrong with a command; "" if nothing. `help` gives a sub-command's help, "" if there is none.
inline std::string command_problem(const std::string& command, const std::set<std::string>& exercises,
                                   bool (*exists)(const std::string&), std::string (*help)(const std::string&)) {
  static const std::set<std::string> everywhere{"cd",  "cmake", "ctest",  "cp",      "diff",
                                                "git", "ls",    "mpirun", "xdg-open"};
  static const std::regex option("\\s(--[a-z-]+)");
  std::istringstream words(command);
  std::string program, first, second;
  words >> program >> first >> second;
  if (everywhere.contains(program)) return "";
  const bool ours = program == "apps/run" || program == "orrery" || program == "build/orrery";
  if (!ours) return exists(program) ? "" : "there is no command " + program;
  static const std::regex milestone("own(\\.[1-6])?");
  if (first == "exercise") {
    const bool bug = second.starts_with("bug.") && exists("apps/book/bugs/" + second.substr(4) + ".cpp");
    const bool there = bug || std::regex_match(second, milestone) || second.empty() || exercises.contains(second);
    return there ? "" : "there is no exercise " + second;
  }
  if (first.ends_with(".cpp"))
    return first.starts_with("mine/") || exists("apps/" + first) ? "" : "there is no program apps/" + first;
  if (first.empty()) return "";
  const std::string text = help(first);
  if (text.empty()) return "there is no sub-command " + first;
  for (const std::string& name : matches_in(command, option))
    if (!has_word(text, name)) return first + " has no option " + name;
  return "";
}

inline Words command_problems(const Chapter& chapter, bool (*exists)(const std::string&),
                              std::string (*help)(const std::string&)) {
  Words found;
  std::set<std::string> exercises;
  for (const auto& [number, title] : chapter.exercises) exercises.insert(number);
  for (const Block& block : chapter.text.blocks) {
    if (block.language != "sh") continue;
    for (const std::string& command : commands_of(block))
      if (const std::string problem = command_problem(command, exercises, exists, help); !problem.empty())
        found.push_back(chapter.at(block.line) + problem);
  }
  return found;
}

/// Letters in lower case, without marks of Markdown.
inline std::string spoken(const std::string& line) {
  std::string text;
  for (const char c : line)
    if (c != '`' && c != '*' && c != '$') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The exercises that the parts list are those that there are. A chapter in Chinese gives them titles of its own, and
/// their tasks, which starters give in English; one in English gives all tasks or none, and links all starters or none.
inline Words exercise_problems(const std::vector<Chapter>& parts) {
  std::map<std::string, std::string> listed;
  size_t tasks = 0, starters = 0;
  for (const Chapter& part : parts) {
    const auto [begin, end] = exercise_section(part.text.prose);
    for (size_t i = begin; i < end; ++i) {
      const std::string& line = part.text.prose[i];
      if (const std::string number = exercise_listed(line); !number.empty()) listed[number] += spoken(line) + "\n";
      for (const char* summary : {"<summary>题目</summary>", "<summary>Task</summary>"})
        tasks += line.find(summary) != std::string::npos;
      starters += line.find("](exercises/") != std::string::npos;
    }
  }
  Words found;
  const Chapter& chapter = parts.at(0);
  if (tasks != chapter.exercises.size() && (chapter.chinese() || tasks > 0))
    found.push_back(chapter.at(1) + "it has " + std::to_string(tasks) + " tasks");
  if (starters != chapter.exercises.size() && starters > 0)
    found.push_back(chapter.at(1) + "it links " + std::to_string(starters) + " starters");
  for (const auto& [number, title] : chapter.exercises) {
    if (!listed.contains(number))
      found.push_back(chapter.at(1) + "exercise " + number + " is not listed");
    else if (!chapter.chinese() && listed[number].find(spoken(title)) == std::string::npos)
      found.push_back(chapter.at(1) + "exercise " + number + " is called \"" + title + "\"");
  }
  for (const auto& [number, line] : listed)
    if (!chapter.exercises.contains(number)) found.push_back(chapter.at(1) + "there is no exercise " + number);
  return found;
}

/// A text is read at one sitting: it has at most 300 lines. What is folded away, such as an answer, does not count, nor
/// does the question before it: there one stops to think. A translation breaks its lines elsewhere and is not counted.
inline Words length_problems(const Chapter& chapter) {
  constexpr size_t most_lines = 300;
  size_t open = 0;
  bool folded = false;
  for (const std::string& line : chapter.lines) {
    folded = folded || line.starts_with("**Check yourself.**") || line.find("<details>") != std::string::npos;
    open += !folded;
    folded = folded && line.find("</details>") == std::string::npos;
  }
  if (chapter.chinese() || open <= most_lines) return {};
  return {chapter.at(most_lines) + std::to_string(open) + " lines"};
}

/// A translation has the numbers, the excerpts and the outputs of the original.
inline Words translation_problems(const Chapter& chapter, const Chapter& original) {
  const auto numbers = [](const Chapter& c) {
    std::set<std::string> result;
    for (const auto& [number, line] : numbers_of(c.text.prose)) result.insert(number);
    return result;
  };
  const auto blocks = [](const Chapter& c, const std::string& language) {
    std::vector<Words> result;
    for (const Block& block : c.text.blocks)
      if (block.language == language) result.push_back(block.lines);
    return result;
  };
  Words found;
  const std::set<std::string> here = numbers(chapter), there = numbers(original);
  for (const std::string& number : here)
    if (!there.contains(number)) found.push_back(chapter.at(1) + "only the translation says " + number);
  for (const std::string& number : there)
    if (!here.contains(number)) found.push_back(chapter.at(1) + "the translation does not say " + number);
  for (const std::string language : {"cpp", "text"})
    if (blocks(chapter, language) != blocks(original, language))
      found.push_back(chapter.at(1) + "the blocks of " + language + " are not those of " + original.path);
  return found;
}

}  // namespace orrery::style
