// Chapter 9. Reading bytes as soon as there are some, and cutting them into lines.
#include "apps/data/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "apps/data/text_file.h"
#include "core/error.h"

namespace orrery::translate {
namespace {

constexpr size_t bytes_at_once = size_t{1} << 16;
constexpr int milliseconds_between_looks = 200;  // at whether the run was stopped

// Whether something can be read, the end of the input included.
bool is_readable(int descriptor, int milliseconds) {
  pollfd input{descriptor, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0;
}

}  // namespace

bool LineReader::wait(const std::function<bool()>& stopped) const {
  while (!is_readable(descriptor_, milliseconds_between_looks)) {
    if (stopped()) return false;
  }
  return !stopped();
}

bool LineReader::has_more() const { return is_readable(descriptor_, 0); }

// Moves the rest of `bytes_` up to the next line feed into the line.
void LineReader::take_bytes(std::vector<Line>& lines) {
  const size_t end = std::min(bytes_.find('\n', taken_), bytes_.size());
  const std::string_view part = std::string_view(bytes_).substr(taken_, end - taken_);
  begun_ = true;
  if (line_.text.size() + part.size() > longest_line) {
    line_ = {.text = {}, .is_whole = false};
  } else if (line_.is_whole) {
    line_.text += part;
  }
  taken_ = end;
  if (end == bytes_.size()) return;
  ++taken_;
  end_line(lines);
}

void LineReader::end_line(std::vector<Line>& lines) {
  lines.push_back({.text = std::string(without_marks(line_.text, is_first_)), .is_whole = line_.is_whole});
  line_ = {};
  begun_ = is_first_ = false;
}

std::vector<Line> LineReader::read(size_t most, const std::function<bool()>& stopped) {
  std::vector<Line> lines;
  while (true) {
    while (taken_ < bytes_.size() && lines.size() < most) take_bytes(lines);
    if (lines.size() == most || at_end_) return lines;
    if (lines.empty() ? !wait(stopped) : !has_more()) return lines;
    bytes_.resize(bytes_at_once);
    const ssize_t count = ::read(descriptor_, bytes_.data(), bytes_.size());
    const int reason = errno;
    bytes_.resize(count > 0 ? static_cast<size_t>(count) : 0);
    taken_ = 0;
    check(count >= 0 || reason == EINTR || reason == EAGAIN, "read " + name_, std::strerror(reason));
    if (count != 0) continue;
    at_end_ = true;
    if (begun_) end_line(lines);
  }
}

}  // namespace orrery::translate
