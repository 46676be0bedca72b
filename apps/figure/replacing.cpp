// Chapter 9. The picture of replacing a file: what stands on the disk at each moment (core/files/file.cpp).
//
// Serves: nn/files/files.h
#include <array>

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"

namespace orrery {

std::string draw_replacing() {
  constexpr double left = 130, step = 140, top = 92, height = 34, width = 4 * step;
  constexpr std::array steps{"write FILE.tmp", "flush FILE.tmp", "rename to FILE", "flush the folder"};
  constexpr double renamed = left + 2.5 * step, flushed = left + 3.5 * step;
  Svg svg(left + width + 40, 300, "Replacing a file: the old one stands until the new one is whole and on the disk");
  svg.text(14, 24, "Replacing FILE: at every moment it is all of the old one or all of the new one", Ink::text, 15);
  svg.arrow(left, 62, left + width + 24, 62, Ink::note);
  for (size_t i = 0; i < steps.size(); ++i) {
    const double x = left + (static_cast<double>(i) + 0.5) * step;
    svg.text(x, 52, steps[i], Ink::text, 13, Anchor::middle);
    svg.line(x, 58, x, 66, Ink::note);
  }
  svg.text(left - 12, top + 22, "FILE", Ink::text, 13, Anchor::end);
  svg.rectangle(left, top, renamed - left, height, Ink::beside, 0.45);
  svg.text(left + 12, top + 22, "the old bytes", Ink::text, 13);
  svg.rectangle(renamed, top, left + width - renamed, height, Ink::mark, 0.85);
  svg.text(renamed + 12, top - 8, "the new bytes", Ink::text, 13);
  svg.text(left - 12, top + 72, "FILE.tmp", Ink::text, 13, Anchor::end);
  constexpr int pieces = 14;
  const double written = left + step, piece = (written - left) / pieces;
  for (int i = 0; i < pieces; ++i) {  // grows while it is written
    const double grown = height * (i + 1) / pieces;
    svg.rectangle(left + i * piece, top + 50 + height - grown, piece, grown, Ink::mark, 0.3);
  }
  svg.rectangle(written, top + 50, renamed - written, height, Ink::mark, 0.3);
  svg.line(renamed, top - 4, renamed, 250, Ink::frame, {.dashed = true});
  svg.line(flushed, 226, flushed, 250, Ink::frame, {.dashed = true});
  const auto outcome = [&](double from, double to, double y, const std::string& words) {
    svg.line(from + 4, y + 6, to - 4, y + 6, Ink::note);
    svg.text((from + to) / 2, y, words, Ink::note, 13, Anchor::middle);
  };
  svg.text(left - 12, 212, "killed here", Ink::text, 13, Anchor::end);
  outcome(left, renamed, 210, "FILE is old, and a part may stand in FILE.tmp");
  outcome(renamed, left + width, 210, "FILE is new");
  svg.text(left - 12, 246, "power failure", Ink::text, 13, Anchor::end);
  outcome(left, renamed, 244, "FILE is old");
  outcome(renamed, flushed, 244, "old or new");
  outcome(flushed, left + width, 244, "new");
  svg.text(left, 282, "Without the first flush the new name may reach the disk before the bytes it stands for.",
           Ink::note, 12);
  return svg.str();
}

}  // namespace orrery
