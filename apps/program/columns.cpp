// Chapter 9. Filling, cutting and breaking text.
//
// Serves: apps/toy/toy.cpp
#include "apps/program/columns.h"

#include <cstdarg>
#include <cstdio>
#include <sstream>

namespace orrery {

std::string fitted(const std::string& text, size_t width) {
  if (text.size() <= width) return text + std::string(width - text.size(), ' ');
  return text.substr(0, width - 2) + "..";
}

std::string fitted_end(const std::string& text, size_t width) {
  return text.size() <= width ? fitted(text, width) : ".." + text.substr(text.size() - (width - 2));
}

std::string broken(const std::string& text, size_t indent, size_t width, size_t continued) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    size_t margin = indent;
    while (margin + line.size() > width) {
      size_t end = line.rfind(' ', width - margin);
      if (end == line.npos || line.find_first_not_of(' ') > end) end = width - margin;  // one long word
      result += std::string(margin, ' ') + line.substr(0, end) + '\n';
      line.erase(0, line[end] == ' ' ? end + 1 : end);
      margin = continued;
    }
    result += std::string(margin, ' ') + line + '\n';
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

}  // namespace orrery
