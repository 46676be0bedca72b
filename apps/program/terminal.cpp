// Chapter 9. Asks the system what stdout and stderr can show.
//
// Serves: apps/toy/toy.cpp
#include "apps/program/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "core/error.h"

namespace orrery {

Terminal terminal_of(int descriptor) {
  winsize size{};
  const bool answered = ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return terminal_rule(isatty(descriptor) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"),
                       answered ? size.ws_col : 0);
}

Terminal terminal_rule(bool is_terminal, const char* no_color, const char* term, int columns) {
  Terminal terminal;
  terminal.live = is_terminal && term != nullptr && std::string_view(term) != "dumb";
  terminal.colours = terminal.live && (no_color == nullptr || *no_color == '\0');
  if (columns > 0) terminal.width = columns;
  return terminal;
}

std::string for_reader(std::string_view text, int descriptor) {
  return isatty(descriptor) == 1 ? harmless_lines(text) : std::string(text);
}

void say(std::string_view what) {
  if (terminal_of(STDERR_FILENO).live) std::cerr << harmless(what) << " ..." << std::endl;
}

std::string coloured(std::string_view text, Colour colour, const Terminal& terminal) {
  if (!terminal.colours) return std::string(text);
  return "\033[" + std::to_string(static_cast<int>(colour)) + "m" + std::string(text) + "\033[0m";
}

}  // namespace orrery
