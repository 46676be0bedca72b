// Chapter 9. Text in a table: filled, cut or broken to a width.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include <string>

namespace orrery {

/// What every table of the program fits.
inline constexpr size_t table_width = 100;

/// `text` filled or cut to `width`; what is cut away shows as "..".
std::string fitted(const std::string& text, size_t width);
/// The same, but the end of the text stays: in "encoder.linear1.weight[7]" it says the most.
std::string fitted_end(const std::string& text, size_t width);
/// `text` in lines of at most `width`, broken at spaces, each after `indent` spaces; its own line ends are kept, and
/// what it continues stands after `continued` spaces.
std::string broken(const std::string& text, size_t indent, size_t width, size_t continued);
/// The same for a table: what continues stands two spaces further in.
inline std::string broken(const std::string& text, size_t indent) {
  return broken(text, indent, table_width, indent + 2);
}
/// printf's `pattern` for one or more numbers.
std::string numbers(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace orrery
