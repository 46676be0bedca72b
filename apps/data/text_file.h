// Chapter 9. Files of text: as a whole, or in pieces, of which only one is in memory; and lines as they come, from a
// person, a program that writes slowly, or a file.
//
// A person waits for the answer to each line. A file has many lines at once, which are translated faster together. So
// LineReader waits only for the first line, and also returns the lines that have already arrived.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// The contents of a file. Errors: a file that cannot be read, is not a regular file, or is empty; a file that is too
/// large for this machine's memory, which must also hold a token for each byte.
std::string read_text(const std::string& path);

/// A piece of a file: about a megabyte.
struct FilePiece {
  std::string_view bytes;
  u64 offset = 0;     ///< where it begins in the file
  bool last = false;  ///< the file ends with it
};
/// Reads a file in pieces. `take` returns how many bytes it used, at least one: the next piece begins after them. Of
/// the last piece it must use all. Errors: those of `read_text`, except that a file may be of any size.
void read_in_pieces(const std::string& path, const std::function<size_t(const FilePiece&)>& take);

/// U+FEFF at the beginning of a file says that it is UTF-8, and is no part of its text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
/// How many bytes of `text` remain if a character that its end cuts off is left out.
size_t whole_characters(std::string_view text);
/// The lines of a text, without what ends them: a line feed, or a carriage return and a line feed. A byte order mark at
/// the beginning is skipped. They refer to `text`.
std::vector<std::string_view> lines_of(std::string_view text);
/// What `lines_of` makes of one line: a carriage return at its end is left out and, before the first line of a text, a
/// byte order mark.
std::string_view without_marks(std::string_view line, bool is_first);
/// The first byte of `text` at which no UTF-8 character begins; npos if there is none.
size_t first_not_utf8(std::string_view text);

struct Line {
  std::string text;      ///< without its end
  bool is_whole = true;  ///< false if it was longer than `longest_line`, and is left out
  std::string prefix{};  ///< of a line to translate: what its translation begins with
};

class LineReader {
 public:
  /// The longest line, in bytes, that is kept.
  static constexpr size_t longest_line = size_t{1} << 20;

  /// Reads from a file descriptor that somebody else owns. `name` stands for it in messages.
  LineReader(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  /// At least one line and at most `most`, or none at the end of the input. Returns none, too, when `stopped()` becomes
  /// true while it waits. A line ends at a line feed, with or without a carriage return before it; a byte order mark at
  /// the beginning is skipped. Error: the input cannot be read.
  std::vector<Line> read(size_t most, const std::function<bool()>& stopped);

 private:
  bool wait(const std::function<bool()>& stopped) const;
  void take_bytes(std::vector<Line>& lines);
  void end_line(std::vector<Line>& lines);

  int descriptor_;
  std::string name_;
  std::string bytes_;  // read, and not yet taken
  size_t taken_ = 0;   // of `bytes_`
  Line line_;          // the one that has not ended
  bool begun_ = false, is_first_ = true, at_end_ = false;
};

}  // namespace orrery
