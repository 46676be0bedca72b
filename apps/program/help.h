// Chapter 9. The format of --help: options in groups, with their defaults, in lines of at most 80 columns.
//
// The help does not list which options exclude each other: an option that starts another kind of run excludes nearly
// all others. The error for a wrong command line names both.
// Serves: apps/toy/toy.cpp
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace orrery {

/// The largest width of a line of help.
inline constexpr size_t help_width = 80;

/// Writes the help of a command and its sub-commands.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace orrery
