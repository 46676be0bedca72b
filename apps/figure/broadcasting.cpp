// Chapter 9. The picture of broadcasting: a column [3, 1] and a row [4] become tables [3, 4], and are added.
//
// Serves: apps/toy/toy.cpp
#include <array>

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"

namespace orrery {
namespace {

constexpr double cell = 44, row_top = 78;
constexpr std::array<int, 3> column_numbers{10, 20, 30};
constexpr std::array<int, 4> row_numbers{1, 2, 3, 4};

// One number in its cell: stored numbers are solid, repeated ones pale with a dashed frame.
void draw_number(Svg& svg, double x, double y, int number, Ink ink, bool stored) {
  svg.rectangle(x + 1, y + 1, cell - 2, cell - 2, ink, stored ? 0.35 : 0.1);
  svg.box(x + 1, y + 1, cell - 2, cell - 2, stored ? ink : Ink::frame, {.dashed = !stored});
  svg.text(x + cell / 2, y + cell * 0.62, std::to_string(number), stored ? Ink::text : Ink::note, 15, Anchor::middle);
}

// A table of 3 rows and 4 columns, whose number (i, j) is number(i, j) and is stored where stored(i, j).
template <class Number, class Stored>
void draw_table(Svg& svg, double x, Ink ink, const Number& number, const Stored& stored) {
  for (size_t i = 0; i < column_numbers.size(); ++i)
    for (size_t j = 0; j < row_numbers.size(); ++j)
      draw_number(svg, x + static_cast<double>(j) * cell, row_top + static_cast<double>(i) * cell, number(i, j), ink,
                  stored(i, j));
}

}  // namespace

std::string draw_broadcasting() {
  constexpr double table = 4 * cell, left = 14, sign = 56, second = left + table + sign, third = second + table + sign;
  constexpr double bottom = row_top + 3 * cell, middle = row_top + 1.5 * cell + 8;
  Svg svg(third + table + 14, bottom + 58, "Broadcasting: a column of shape 3, 1 and a row of shape 4 give a table");
  svg.text(left, 24, "Broadcasting: a column and a row give a table", Ink::text, 15);
  const auto heading = [&](double x, const std::string& name, const std::string& shape) {
    svg.text(x, row_top - 26, name, Ink::text, 13);
    svg.text(x, row_top - 9, shape, Ink::note, 12);
  };
  heading(left, "column [3, 1]", "each number repeated 4 times");
  heading(second, "row [4]", "the whole row repeated 3 times");
  heading(third, "column + row [3, 4]", "added element by element");
  const auto from_column = [](size_t i, size_t) { return column_numbers[i]; };
  const auto from_row = [](size_t, size_t j) { return row_numbers[j]; };
  draw_table(svg, left, Ink::mark, from_column, [](size_t, size_t j) { return j == 0; });
  draw_table(svg, second, Ink::second, from_row, [](size_t i, size_t) { return i == 0; });
  draw_table(
      svg, third, Ink::beside, [&](size_t i, size_t j) { return from_column(i, j) + from_row(i, j); },
      [](size_t, size_t) { return true; });
  svg.arrow(left + cell * 0.5, bottom + 14, left + table, bottom + 14, Ink::mark);
  svg.arrow(second + table + 14, row_top + cell * 0.5, second + table + 14, bottom, Ink::second);
  svg.text(second - sign / 2, middle, "+", Ink::text, 22, Anchor::middle);
  svg.text(third - sign / 2 + 8, middle, "=", Ink::text, 22, Anchor::middle);
  svg.text(left, bottom + 42,
           "Solid cells are stored. Dashed cells are the same numbers, read again: nothing is copied.", Ink::note, 12);
  return svg.str();
}

}  // namespace orrery
