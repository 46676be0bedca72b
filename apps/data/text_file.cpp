// Chapter 9. Reading files of text, and finding what is not UTF-8; reading bytes as soon as there are some, and cutting
// them into lines.
#include "apps/data/text_file.h"

#include <unistd.h>

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "apps/program/machine.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/utf8.h"

namespace orrery {
namespace {

// How many bytes at the beginning of `text` are ASCII, rounded down to words of eight bytes.
size_t ascii_words(std::string_view text) {
  size_t at = 0;
  for (u64 word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return at;
}

}  // namespace

std::string read_text(const std::string& path) {
  const InputFile file(path);
  check(file.size() > 0, "text", path, " is empty");
  // The byte; its token, if every byte is one; and as much again while the list of tokens grows.
  constexpr u64 bytes_of_character = 1 + 2 * sizeof(i32);
  const u64 memory = static_cast<u64>(physical_memory());
  check(file.size() <= memory / bytes_of_character, "text", path, " has ", file.size(),
        " bytes, too many for this machine's ", memory >> 20, " MB of memory");
  return file.text();
}

void read_in_pieces(const std::string& path, const std::function<size_t(const FilePiece&)>& take) {
  constexpr u64 most = 1 << 20;
  const InputFile file(path);
  check(file.size() > 0, "text", path, " is empty");
  std::string bytes(std::min(most, file.size()), ' ');
  for (u64 offset = 0; offset < file.size();) {
    bytes.resize(std::min(most, file.size() - offset));
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    const bool last = offset + bytes.size() == file.size();
    const size_t used = take({bytes, offset, last});
    check(used > 0 && used <= bytes.size() && (used == bytes.size() || !last), "text", path,
          " cannot be used from byte ", offset, " on");
    offset += used;
  }
}

size_t whole_characters(std::string_view text) {
  constexpr size_t longest = 4;
  for (size_t back = 1; back <= std::min(text.size(), longest - 1); ++back) {
    const size_t at = text.size() - back;
    if (continues_character(text[at])) continue;
    return announced_bytes(text[at]) > back ? at : text.size();
  }
  return text.size();
}

std::string_view without_marks(std::string_view line, bool is_first) {
  if (is_first && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(without_marks(text.substr(begin, end - begin), begin == 0));
    begin = end + 1;
  }
  return lines;
}

size_t first_not_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    at += ascii_words(text.substr(at));
    if (at == text.size()) break;
    const size_t bytes = first_character(text.substr(at)).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return text.npos;
}

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
    if (lines.empty() ? !wait(stopped) : !is_readable(descriptor_, 0)) return lines;
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

}  // namespace orrery
