// Chapter 9. The picture of the positional encodings: a row for each position, a column for each of its numbers.
#include <cmath>

#include "apps/show/figure/figures.h"
#include "apps/show/figure/svg.h"
#include "nn/positions/positional_encoding.h"

namespace orrery {

std::string draw_positions() {
  constexpr i64 count = 24, d_model = 32;
  constexpr double width = 20, height = 12, gap = 1, left = 84, top = 78, bottom = 62;
  const Tensor PE = nn::sinusoidal_table(count, d_model);
  Svg svg(left + d_model * width + 16, top + count * height + bottom,
          "The sinusoidal encodings of positions 0 to 23 with 32 columns, as a grid of colours");
  svg.text(14, 22, "PE(position): sines in even columns, cosines in odd ones", Ink::text, 15);
  svg.text(left, 46, "column", Ink::note, 12);
  svg.text(14, top + 10, "position", Ink::note, 12);
  for (i64 j = 0; j < d_model; j += 2)
    svg.text(left + (static_cast<double>(j) + 0.5) * width, top - 7, std::to_string(j), Ink::note, 11, Anchor::middle);
  for (i64 p = 0; p < count; ++p) {
    const double y = top + static_cast<double>(p) * height;
    if (p % 4 == 0) svg.text(left - 7, y + 10, std::to_string(p), Ink::note, 11, Anchor::end);
    for (i64 j = 0; j < d_model; ++j) {
      const double value = std::round(PE(p, j) * 20) / 20;  // 20 shades of each colour
      if (value == 0) continue;
      svg.rectangle(left + static_cast<double>(j) * width, y, width - gap, height - gap,
                    value > 0 ? Ink::mark : Ink::second, std::fabs(value));
    }
  }
  const double legend = top + count * height + 14;
  svg.rectangle(left, legend, 12, 12, Ink::mark);
  svg.text(left + 18, legend + 10, "1", Ink::note, 12);
  svg.rectangle(left + 46, legend, 12, 12, Ink::mark, 0.5);
  svg.text(left + 64, legend + 10, "0.5", Ink::note, 12);
  svg.rectangle(left + 106, legend, 12, 12, Ink::second, 0.5);
  svg.text(left + 124, legend + 10, "-0.5", Ink::note, 12);
  svg.rectangle(left + 170, legend, 12, 12, Ink::second);
  svg.text(left + 188, legend + 10, "-1", Ink::note, 12);
  svg.text(left, legend + 34,
           "The leftmost pair of columns turns by 1 radian per position, the rightmost hardly at all.", Ink::note, 12);
  return svg.str();
}

}  // namespace orrery
