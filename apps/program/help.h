// Chapter 9. How --help looks: in groups, with every default, in lines that fit a terminal of 80 columns.
//
// What may not be given together is not listed with each option, since one that begins another kind of run excludes
// nearly all: the error of the command line names both.
// Serves: apps/toy/toy.cpp
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace orrery {

/// What a line of a help text fits.
inline constexpr size_t help_width = 80;

/// Writes the help of a command and its sub-commands.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace orrery
