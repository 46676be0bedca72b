// Chapter 9. Lines as they come: from a person, a program that writes slowly, or a file.
//
// A person waits for the answer to each line. A file has many lines at once, which are translated faster together. So
// `read` waits only for the first line, and also returns the lines that have already arrived.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace orrery::translate {

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
  bool has_more() const;
  void take_bytes(std::vector<Line>& lines);
  void end_line(std::vector<Line>& lines);

  int descriptor_;
  std::string name_;
  std::string bytes_;  // read, and not yet taken
  size_t taken_ = 0;   // of `bytes_`
  Line line_;          // the one that has not ended
  bool begun_ = false, is_first_ = true, at_end_ = false;
};

}  // namespace orrery::translate
