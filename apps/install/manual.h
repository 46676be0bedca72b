// Chapter 9. The manual page: the program's own help, in the language of man(1).
//
// `orrery manual | man -l -` shows it; `cmake --install` writes it to share/man/man1.
// Serves: apps/toy/toy.cpp
#pragma once

#include <string>

#include "apps/program/help.h"

namespace orrery {

/// The page of a program and all of its commands.
std::string manual_page(const CommandHelp& program, const std::string& version);

}  // namespace orrery
