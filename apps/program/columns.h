// Chapter 9. Text in a table: filled, cut or wrapped to a width, and joined.
#pragma once

#include <string>
#include <string_view>
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

}  // namespace orrery
