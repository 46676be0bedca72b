// Chapter 9. Pictures about training: learning rates over the steps, and three optimisers in a long valley.
//
// Both are computed: schedules from optim/schedule.h, and the ways through the valley in double, by each optimiser's
// formula on two numbers.
#include <array>
#include <cmath>
#include <functional>

#include "apps/show/figure/chart.h"
#include "apps/show/figure/figures.h"
#include "optim/schedule.h"

namespace orrery {
namespace {

constexpr double training_width = 640;

// A sample of a curve's line, and what it is.
void draw_curve_key(Svg& svg, double x, double y, const std::string& words, Ink ink, Stroke stroke) {
  svg.line(x, y - 4, x + 22, y - 4, ink, stroke);
  svg.text(x + 29, y, words, Ink::note, 12);
}

using ValleyPlace = std::array<double, 2>;

// L = (x^2 + 100 y^2) / 2.
constexpr ValleyPlace steepness{1, 100};

constexpr int steps_in_valley = 60;

std::vector<ValleyPlace> way_of_momentum(ValleyPlace place, double rate, double momentum) {
  std::vector<ValleyPlace> way{place};
  ValleyPlace velocity{};
  for (int step = 1; step <= steps_in_valley; ++step) {
    for (size_t i = 0; i < 2; ++i) {
      velocity[i] = momentum * velocity[i] + steepness[i] * place[i];
      place[i] -= rate * velocity[i];
    }
    way.push_back(place);
  }
  return way;
}

std::vector<ValleyPlace> way_of_adam(ValleyPlace place, double rate) {
  constexpr double beta1 = 0.9, beta2 = 0.999;
  std::vector<ValleyPlace> way{place};
  ValleyPlace m{}, v{};
  for (int step = 1; step <= steps_in_valley; ++step) {
    for (size_t i = 0; i < 2; ++i) {
      const double g = steepness[i] * place[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(beta1, step)), v_hat = v[i] / (1 - std::pow(beta2, step));
      place[i] -= rate * m_hat / std::sqrt(v_hat);
    }
    way.push_back(place);
  }
  return way;
}

// The points from x = left to right at which L has the value `level`, above the x axis or, with side -1, below.
std::vector<Point> contour(double level, double left, double right, double side) {
  constexpr int steps = 24;
  std::vector<Point> points;
  for (int i = 0; i <= steps; ++i) {
    const double x = left + (right - left) * i / steps;
    points.push_back({x, side * std::sqrt((2 * level - steepness[0] * x * x) / steepness[1])});
  }
  return points;
}

}  // namespace

std::string draw_schedules() {
  constexpr i64 d_model = 512, warmup = 4000, total = 20000, flat_until = 15000, between = 50;
  Svg svg(training_width, 344,
          "Learning rates over 20,000 steps: Noam with two warm-ups, with a cool-down, and a cosine");
  svg.text(14, 22, "Learning rate over the steps", Ink::text, 15);
  draw_curve_key(svg, 64, 46, "noam, warmup 4,000", Ink::mark, {.width = 2});
  draw_curve_key(svg, 372, 46, "noam, warmup 2,000", Ink::mark, {.width = 2, .dashed = true});
  draw_curve_key(svg, 64, 66, "noam with a cool-down from step 15,000", Ink::second, {.width = 2});
  draw_curve_key(svg, 372, 66, "warmup_cosine, peak 0.0007", Ink::beside, {.width = 2});
  Chart chart(svg, {.x = 64, .y = 100, .width = 556, .height = 196},
              {.name = "step",
               .low = 0,
               .high = total,
               .ticks = {{2000, "2,000"}, {4000, "4,000"}, {10000, "10,000"}, {15000, "15,000"}, {20000, "20,000"}}},
              {.name = "learning rate",
               .low = 0,
               .high = 0.001,
               .ticks = {{0.00025, "0.00025"}, {0.0005, "0.0005"}, {0.00075, "0.00075"}, {0.001, "0.001"}}});
  const auto draw_rate = [&](const std::function<double(i64)>& rate, i64 first, Ink ink, Stroke stroke) {
    std::vector<Point> points;
    const auto add_point = [&](i64 step) { points.push_back({static_cast<double>(step), rate(step)}); };
    add_point(first);
    for (i64 step = between * (first / between + 1); step <= total; step += between) add_point(step);
    chart.curve(points, ink, stroke);
  };
  const auto paper = [](i64 step) { return optim::noam(step, d_model, warmup); };
  draw_rate([](i64 step) { return optim::warmup_cosine(step, 0.0007, warmup, total); }, 1, Ink::beside, {.width = 2});
  draw_rate([](i64 step) { return optim::noam(step, d_model, 2000); }, 1, Ink::mark, {.width = 2, .dashed = true});
  draw_rate(paper, 1, Ink::mark, {.width = 2});
  draw_rate([&](i64 step) { return paper(step) * optim::linear_cooldown(step, total, flat_until); }, flat_until,
            Ink::second, {.width = 2});
  return svg.str();
}

std::string draw_valley() {
  constexpr double left = -0.6, right = 1.1;
  Svg svg(440, 424, "Gradient descent, momentum and Adam in a long valley, from the same point, 60 steps each");
  svg.text(14, 22, "Sixty steps through L = (x\u00b2 + 100 y\u00b2) / 2, from (1, 1)", Ink::text, 15);
  draw_curve_key(svg, 14, 46, "gradient descent, rate 0.018", Ink::beside, {.width = 2});
  draw_curve_key(svg, 14, 64, "momentum 0.9, rate 0.018", Ink::second, {.width = 2});
  draw_curve_key(svg, 14, 82, "Adam, rate 0.05", Ink::mark, {.width = 2});
  draw_curve_key(svg, 240, 46, "contour: L is the same", Ink::note, {.dashed = true});
  Chart chart(svg, {.x = 40, .y = 116, .width = 384, .height = 260},
              {.name = "x", .low = left, .high = right, .ticks = {{-0.5, "-0.5"}, {0, "0"}, {0.5, "0.5"}, {1, "1"}}},
              {.name = "y", .low = -1.1, .high = 1.1, .ticks = {{-1, "-1"}, {0, "0"}, {1, "1"}}});
  for (const double level : {2, 12, 32}) {
    for (const double side : {-1, 1}) chart.curve(contour(level, left, right, side), Ink::note, {.dashed = true});
    const Point end = chart.place(left, contour(level, left, right, 1).front().y);
    svg.text(end.x + 4, end.y - 3, "L = " + std::to_string(static_cast<int>(level)), Ink::note, 10);
  }
  const auto draw_way = [&](const std::vector<ValleyPlace>& way, Ink ink) {
    std::vector<Point> points;
    for (const ValleyPlace& place : way) points.push_back({place[0], place[1]});
    chart.curve(points, ink, {.width = 1.5});
    for (const ValleyPlace& place : way) {
      const Point at = chart.place(place[0], place[1]);
      svg.circle(at.x, at.y, 2.2, ink);
    }
  };
  const ValleyPlace start{1, 1};
  draw_way(way_of_momentum(start, 0.018, 0), Ink::beside);
  draw_way(way_of_momentum(start, 0.018, 0.9), Ink::second);
  draw_way(way_of_adam(start, 0.05), Ink::mark);
  return svg.str();
}

}  // namespace orrery
