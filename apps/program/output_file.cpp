// Chapter 9. The checks of files that a command will write, and how text is written.
#include "apps/program/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"

namespace orrery {

void check_can_write(const std::string& command, const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const bool writable = ::access(folder.c_str(), W_OK) == 0;
  const std::string reason = writable ? "" : std::strerror(errno);
  check(writable, command, "cannot write ", option, ' ', path, ": the folder ", folder.string(), ": ", reason);
  std::error_code problem;  // such as a name that is too long, or links that lead in a circle
  const std::filesystem::file_type type = std::filesystem::status(path, problem).type();
  using enum std::filesystem::file_type;
  check(type != none, command, "cannot write to ", option, ' ', path, ": ", problem.message());
  check(type != directory, command, option, ' ', path, " is a folder",
        option == "--save" ? "; a name that ends in / saves model and log in it" : "");
  check(type == not_found || type == regular, command, option, ' ', path, " is not a regular file");
}

void check_can_write_text(const std::string& command, const std::string& option, const std::string& path) {
  check_can_write(command, option, path);
  check(path.empty() || !holds_model(path), command, option, ' ', path,
        " is a file that holds a model; name another, or remove it");
}

bool holds_model(const std::string& path) {
  std::error_code absent;
  if (!std::filesystem::exists(path, absent) || std::filesystem::is_directory(path, absent)) return false;
  try {
    read_safetensors_metadata(path);
    return true;
  } catch (const SystemError&) { throw; } catch (const Error&) {
    return false;
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code absent, unknown;
  if (std::filesystem::equivalent(a, b, absent)) return true;
  const auto place = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  const std::filesystem::path one = place(a);
  return !one.empty() && one == place(b);
}

void write_text(const std::string& path, const std::string& text) {
  const std::array parts{std::as_bytes(std::span(text))};
  replace_file(path, parts);
}

std::string shell_quoted(const std::string& argument) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_@%+=:,./-", c) != nullptr; };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), is_plain)) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace orrery
