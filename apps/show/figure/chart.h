// Chapter 9. A chart: curves in a frame with ticks.
//
// The axes say where numbers stand on the page; everything else is drawn with Svg, at `place(x, y)`.
#pragma once

#include <string>
#include <vector>

#include "apps/show/figure/svg.h"

namespace orrery {

/// A number on an axis, and how it is written.
struct Tick {
  double at = 0;
  std::string label;
};

/// What one side of a chart measures. Both ends of a logarithmic axis are above 0.
struct Axis {
  std::string name;
  double low = 0, high = 1;
  std::vector<Tick> ticks{};
  bool logarithmic = false;
};

/// A rectangle on the page, in pixels.
struct Area {
  double x = 0, y = 0, width = 0, height = 0;
};

class Chart {
 public:
  /// Draws the frame, a thin line for each tick, its label, and the names of the axes: y's above the frame, x's below.
  /// `area` is the frame; the labels need about 50 pixels to its left, 24 above and 40 below.
  Chart(Svg& svg, const Area& area, Axis x, Axis y);
  /// Where a point of the data stands on the page. What is beyond the end of an axis stands at its end.
  Point place(double x, double y) const;
  /// Straight lines from point to point of the data.
  void curve(const std::vector<Point>& data, Ink ink, Stroke stroke = {.width = 2});

 private:
  Svg& svg_;
  Area area_;
  Axis x_, y_;
};

}  // namespace orrery
