// Chapter 9. Where output goes: to a terminal, or into a file or pipe.
//
// Colours and lines that are drawn again are for terminals only. NO_COLOR (https://no-color.org) switches colours off.
// Serves: apps/toy/toy.cpp
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace orrery {

/// What stdout or stderr can show.
struct Terminal {
  bool live = false;     ///< a terminal on which a line can be drawn again
  bool colours = false;  ///< `live`, and colours are not switched off
  int width = 80;        ///< columns
};

/// Asks the system about a file descriptor: STDOUT_FILENO or STDERR_FILENO.
Terminal terminal_of(int descriptor);

/// The rule behind `terminal_of`, a separate function so that it can be tested. `no_color` and `term` are environment
/// variables, null if not set. `columns` is the width that the terminal reports, 0 if it does not.
Terminal terminal_rule(bool is_terminal, const char* no_color, const char* term, int columns);

/// Text of others as it is written to a file descriptor: `harmless_lines` for a terminal, unchanged for a file or pipe.
std::string for_reader(std::string_view text, int descriptor);

/// A part of a run that may take long, such as reading a text. While it exists, stderr says what it is: on a terminal
/// at once, in a file or pipe when it has taken `patience` seconds.
class Phase {
 public:
  explicit Phase(std::string_view what, double patience = 1);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread teller_;
};

enum class Colour { red = 31, green = 32, yellow = 33 };
/// `text` in a colour if the terminal shows colours, else unchanged.
std::string coloured(std::string_view text, Colour colour, const Terminal& terminal);

}  // namespace orrery
