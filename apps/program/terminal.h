// Chapter 9. Where output goes, to a terminal, or into a file or pipe; and text in a table: filled, cut or wrapped to a
// width, and joined.
//
// Colours and lines that are drawn again are for terminals only. NO_COLOR (https://no-color.org) switches colours off,
// the only escape sequences there are.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace orrery {

/// The largest width of the program's tables.
inline constexpr size_t table_width = 100;

/// `text` filled with blanks or cut off to `width`; ".." shows that something was cut off.
std::string fitted(const std::string& text, size_t width);
/// The same, but the beginning is cut off: in "encoder.linear1.weight[7]" the end says the most.
std::string fitted_end(const std::string& text, size_t width);
/// The same for text of any alphabet, in which a character takes one column: the middle is cut out, since long names
/// differ at both ends.
std::string fitted_middle(const std::string& text, size_t width);
/// At most `most` characters of a line, the last three of them points if it goes on; blanks at its end are left out.
std::string shortened(const std::string& line, size_t most);
/// `text` in lines of at most `width`, wrapped at spaces. Each of its own lines is indented by `indent` spaces, and the
/// rest of a wrapped line by `continued`.
std::string wrapped(const std::string& text, size_t indent, size_t width, size_t continued);
/// The same for a table: the rest of a wrapped line is indented by two more spaces.
inline std::string wrapped(const std::string& text, size_t indent) {
  return wrapped(text, indent, table_width, indent + 2);
}
/// All parts in a row, with `separator` between them.
std::string joined(const std::vector<std::string>& parts, std::string_view separator);
/// printf's `pattern` for one or more numbers.
std::string numbers(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

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
