// Chapter 9. Asks the system what stdout and stderr can show.
#include "apps/program/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <system_error>

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

Phase::Phase(std::string_view what, double patience) {
  const auto tell = [line = harmless(what) + " ...\n"] { std::cerr << line << std::flush; };
  if (terminal_of(STDERR_FILENO).live) {
    tell();
    return;
  }
  const auto tell_later = [this, tell, patience] {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::duration<double>(patience), [this] { return is_over_; })) tell();
  };
  try {
    teller_ = std::thread(tell_later);
  } catch (const std::system_error&) { tell(); }  // no thread can be had
}

Phase::~Phase() {
  if (!teller_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  teller_.join();
}

std::string coloured(std::string_view text, Colour colour, const Terminal& terminal) {
  if (!terminal.colours) return std::string(text);
  return "\033[" + std::to_string(static_cast<int>(colour)) + "m" + std::string(text) + "\033[0m";
}

}  // namespace orrery
