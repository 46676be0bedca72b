// Chapter 9. Lines of the project's own sources: where an operation or a layer is written, and its code.
//
// The lines are looked up in the files when they are shown, so that they are true after every change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// A piece of code: its file from the root of the repository, its first line, and all of its lines.
struct SourceLine {
  std::string path;
  i64 line = 0;
  std::vector<std::string> code;

  std::string str() const { return path + ":" + std::to_string(line); }
};

/// The statement or function that begins in the first line with `text`, searched from the first line with `after` on.
/// Error: the file has no such line.
SourceLine find_source_line(const std::string& path, std::string_view after, std::string_view text);

/// The `function`, "forward" or "backward", of the struct that defines `operation`. If it only calls the same function
/// of a part that operations share, this is the part's, which stands first in the file. Error: there is none.
SourceLine operation_source(std::string_view operation, std::string_view function);

}  // namespace orrery
