// Chapter 9. A picture as text: SVG, in colours that fit a light and a dark page; and a chart: curves in a frame.
//
// A picture has a width and a height in pixels, x to the right and y down. Colours are named by what they are for, and
// the style sheet inside the picture says what each name means on a light and on a dark page.
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What a shape or a text is drawn for.
enum class Ink {
  text,    ///< what is read first
  note,    ///< labels and explanations
  frame,   ///< thin lines around and between
  mark,    ///< what the picture is about
  beside,  ///< what it is compared with
  second,  ///< a second thing that the picture is about, such as gradients beside values
};

/// Where a text stands relative to its x.
enum class Anchor { start, middle, end };

struct Point {
  double x = 0, y = 0;
};

/// How a line is drawn.
struct Stroke {
  double width = 1;
  bool dashed = false;
};

/// Words as they stand in SVG or HTML. They may come from a foreign file, so they are also made
/// `harmless` (core/error.h).
std::string in_markup(const std::string& words);

class Svg {
 public:
  /// `title` is read aloud by screen readers and shown when the mouse rests on the picture.
  Svg(double width, double height, const std::string& title);
  /// A filled rectangle; `opacity` from 0, invisible, to 1.
  void rectangle(double x, double y, double width, double height, Ink ink, double opacity = 1);
  /// The outline of a rectangle.
  void box(double x, double y, double width, double height, Ink ink = Ink::frame, Stroke stroke = {});
  void line(double x1, double y1, double x2, double y2, Ink ink, Stroke stroke = {});
  /// Straight lines from point to point; needs at least two.
  void polyline(const std::vector<Point>& points, Ink ink, Stroke stroke = {});
  /// A filled circle.
  void circle(double x, double y, double radius, Ink ink, double opacity = 1);
  /// One line of text; y is its base line. `size` is in pixels.
  void text(double x, double y, const std::string& words, Ink ink, double size = 13, Anchor anchor = Anchor::start);
  /// The whole picture.
  std::string str() const;

 private:
  void path(const std::string& commands, const std::string& classes, const Stroke& stroke);

  std::string head_, body_;
};

/// A number on an axis, and how it is written.
struct Tick {
  double at = 0;
  std::string label;
};

/// What one side of a chart measures.
struct Axis {
  std::string name;
  double low = 0, high = 1;
  std::vector<Tick> ticks{};
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
