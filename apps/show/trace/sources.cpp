// Chapter 9. Looking up lines of the project's own sources.
#include "apps/show/trace/sources.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "apps/program/shipped_files.h"
#include "core/error.h"

namespace orrery {
namespace {

std::vector<std::string> source_lines(const std::string& path) {
  std::istringstream text(shipped_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

bool holds(const std::string& line, std::string_view text) { return line.find(text) != line.npos; }

// From line `begin` to where its brackets are closed and a statement or a body ends.
std::vector<std::string> code_from(const std::vector<std::string>& lines, size_t begin) {
  std::vector<std::string> code;
  const size_t indent = lines[begin].find_first_not_of(' ');
  int depth = 0;
  for (size_t i = begin; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    code.push_back(line.substr(std::min({indent, line.find_first_not_of(' '), line.size()})));
    for (const char c : line.substr(0, line.find("//"))) {
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
    }
    const std::string ended = line.substr(0, line.find("  //"));
    if (depth <= 0 && (ended.ends_with(';') || ended.ends_with('}'))) break;
  }
  return code;
}

// Files of operations, in the order of their names.
std::vector<std::string> operation_files() {
  const std::filesystem::path root = shipped_path("");
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "autograd/ops")) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp")
      paths.push_back(entry.path().lexically_relative(root).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

SourceLine find_source_line(const std::string& path, std::string_view after, std::string_view text) {
  const std::vector<std::string> lines = source_lines(path);
  const auto start =
      std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return holds(line, after); });
  const auto found = std::find_if(start, lines.end(), [&](const std::string& line) { return holds(line, text); });
  check(found != lines.end(), "trace", path, " has no line with '", text, "'");
  const size_t i = static_cast<size_t>(found - lines.begin());
  return {path, static_cast<i64>(i) + 1, code_from(lines, i)};
}

SourceLine operation_source(std::string_view operation, std::string_view function) {
  const std::string name = "std::string_view name = \"" + std::string(operation) + "\";";
  const std::string call = std::string(function) + "(";
  for (const std::string& path : operation_files()) {
    if (!holds(shipped_text(path), name)) continue;
    const SourceLine found = find_source_line(path, name, " " + call);
    const bool hands_on = found.code.size() == 1 && holds(found.code[0], "." + call);
    return hands_on ? find_source_line(path, "", " " + call) : found;
  }
  fail("trace", "no file of autograd/ops defines ", operation);
}

}  // namespace orrery
