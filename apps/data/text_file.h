// Chapter 9. Files of text: as a whole, or in pieces, of which only one is in memory.
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

}  // namespace orrery
