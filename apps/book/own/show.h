// Chapter 9. What the milestones print: how far a training is, and what a network sees.
#pragma once

#include "apps/book/grade/prelude.h"

namespace own {
using namespace orrery;

inline const std::string search = "Let the training print more: does the loss fall?";  // a hint

inline std::string percent(double fraction) { return std::to_string(std::lround(100 * fraction)) + " %"; }

/// A line at the first step, and at each fifth of all.
inline void progress(i64 step, i64 steps, double loss, const std::function<std::string()>& what) {
  if (step != 1 && step % (steps / 5) != 0) return;
  std::cout << "step " << std::setw(4) << step << " of " << steps << "   loss " << std::fixed << std::setprecision(4)
            << loss << "   " << what() << std::endl;
}

/// Two characters, the darker the nearer x is to 1.
inline std::string shade(double x) {
  return std::string(2, " .:-=+*#%@"[static_cast<size_t>(std::clamp(x, 0.0, 0.999) * 10)]);
}

/// A point of the plane, on the side 1 or -1.
struct Point {
  double x, y, side;
};

/// The fraction of the points that f puts on the right side.
template <class F> double right(const F& f, const std::vector<Point>& points) {
  const auto is_right = [&](const Point& p) { return f(p.x, p.y) * p.side > 0; };
  return static_cast<double>(std::count_if(points.begin(), points.end(), is_right)) /
         static_cast<double>(points.size());
}

/// The square from -1.2 to 1.2: # where f is positive, points as A (1) and B (-1).
template <class F> void show_plane(const F& f, const std::vector<Point>& points) {
  constexpr int rows = 13, columns = 37;
  std::vector<std::string> plane(rows, std::string(columns, '.'));
  const auto place = [](double x, int n) { return static_cast<size_t>(std::lround((x / 1.2 + 1) / 2 * (n - 1))); };
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      if (f(2.4 * column / (columns - 1) - 1.2, 1.2 - 2.4 * row / (rows - 1)) > 0)
        plane[static_cast<size_t>(row)][static_cast<size_t>(column)] = '#';
  for (const Point& p : points) plane[place(-p.y, rows)][place(p.x, columns)] = p.side > 0 ? 'A' : 'B';
  for (const std::string& row : plane) std::cout << "    " << row << '\n';
}

}  // namespace own
