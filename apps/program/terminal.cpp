// Chapter 9. Asks the system what stdout and stderr can show; fills, cuts and wraps text.
#include "apps/program/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "core/utf8.h"

namespace orrery {

std::string fitted(const std::string& text, size_t width) {
  if (text.size() <= width) return text + std::string(width - text.size(), ' ');
  return text.substr(0, width - 2) + "..";
}

std::string fitted_end(const std::string& text, size_t width) {
  return text.size() <= width ? fitted(text, width) : ".." + text.substr(text.size() - (width - 2));
}

std::string fitted_middle(const std::string& text, size_t width) {
  std::vector<std::string_view> characters;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(characters.back().size()))
    characters.push_back(rest.substr(0, std::max<size_t>(1, first_character(rest).bytes)));
  const size_t length = characters.size();
  if (length <= width) return text + std::string(width - length, ' ');
  const size_t kept = width - 2, begin = kept / 2;
  std::string result;
  for (size_t i = 0; i < begin; ++i) result += characters[i];
  result += "..";
  for (size_t i = length - (kept - begin); i < length; ++i) result += characters[i];
  return result;
}

std::string shortened(const std::string& line, size_t most) {
  const size_t text = line.find_last_not_of(' ') + 1;
  size_t at = 0, cut = 0, characters = 0;
  for (; at < text && characters < most; ++characters) {
    if (characters + 3 <= most) cut = at;
    at += std::max<size_t>(1, first_character(std::string_view(line).substr(at)).bytes);
  }
  return at >= text ? line.substr(0, text) : line.substr(0, cut) + "...";
}

std::string wrapped(const std::string& text, size_t indent, size_t width, size_t continued) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    size_t margin = indent;
    while (margin + line.size() > width) {
      size_t end = line.rfind(' ', width - margin);
      if (end == line.npos || line.find_first_not_of(' ') > end) {  // one long word
        end = width - margin;
        while (end > 1 && continues_character(line[end])) --end;  // not inside a character
      }
      result += std::string(margin, ' ') + line.substr(0, end) + '\n';
      line.erase(0, line[end] == ' ' ? end + 1 : end);
      margin = continued;
    }
    result += std::string(margin, ' ') + line + '\n';
  }
  return result;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) result += separator;
    result += part;
  }
  return result;
}

std::string numbers(const char* pattern, ...) {
  char text[160];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

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
