// Chapter 9. The picture of a training: its loss and its accuracy, step by step.
#include <algorithm>
#include <cmath>

#include "apps/show/figure/figure_data.h"
#include "apps/show/figure/figures.h"
#include "apps/show/figure/svg.h"

namespace orrery {
namespace {

double three_decimals(double x) { return std::round(x * 1000) / 1000; }

// The points of a curve: each mean stands at the middle of its steps.
std::vector<Point> over_steps(const LossFigure& figure, const std::vector<double>& means, double factor) {
  std::vector<Point> points;
  for (size_t i = 0; i < means.size(); ++i) {
    const double first = static_cast<double>(i) * figure.every;
    const double last = std::min<double>(figure.steps, first + figure.every);
    points.push_back({(first + 1 + last) / 2, means[i] * factor});
  }
  return points;
}

// The first step, the middle and the end.
Axis steps_axis(const LossFigure& figure) {
  Axis axis{.name = "step", .low = 0, .high = static_cast<double>(figure.steps)};
  for (const int half : {0, 1, 2}) {
    const int step = figure.steps * half / 2;
    axis.ticks.push_back({static_cast<double>(step), std::to_string(step)});
  }
  return axis;
}

}  // namespace

std::string to_json(const LossFigure& figure) {
  Json result{{"task", figure.task},
              {"steps", figure.steps},
              {"every", figure.every},
              {"guess", three_decimals(figure.guess)},
              {"least", three_decimals(figure.least)},
              {"loss", Json::array()},
              {"accuracy", Json::array()}};
  for (const double x : figure.loss) result["loss"].push_back(three_decimals(x));
  for (const double x : figure.accuracy) result["accuracy"].push_back(three_decimals(x));
  return result.dump() + "\n";
}

LossFigure loss_figure(const std::string& text) {
  LossFigure figure = read_figure(text, [](nn::config_json::Reader& read) {
    LossFigure data{.task = {}, .loss = {}, .accuracy = {}};
    read("task", data.task);
    read("steps", data.steps);
    read("every", data.every);
    read("guess", data.guess);
    read("least", data.least);
    read("loss", data.loss);
    read("accuracy", data.accuracy);
    return data;
  });
  check(figure.steps > 0 && figure.every > 0, "figure", "has means of ", figure.every, " steps of ", figure.steps);
  const int points = (figure.steps - 1) / figure.every + 1;
  check(figure.loss.size() == static_cast<size_t>(points) && figure.accuracy.size() == figure.loss.size(), "figure",
        "has ", figure.loss.size(), " losses and ", figure.accuracy.size(), " accuracies for ", points, " points");
  check(points > 1, "figure", "has one point, and a curve needs two: train for more than ", figure.every,
        figure.every == 1 ? " step" : " steps");
  const auto check_range = [](const std::string& name, double x, double most) {
    check(x >= 0 && x <= most, "figure", name, " must be from 0 to ", most, ", not ", x);
  };
  constexpr double largest_loss = 1000;  // a curve beyond it shows nothing
  check_range("guess", figure.guess, largest_loss);
  check_range("least", figure.least, largest_loss);
  for (const double x : figure.loss) check_range("loss", x, largest_loss);
  for (const double x : figure.accuracy) check_range("accuracy", x, 1);
  return figure;
}

std::string draw(const LossFigure& figure) {
  constexpr double width = 720, top = 64, height = 200, chart_width = 280, left = 50, between = 70;
  Svg svg(width, top + height + 48, "The loss of the toy falls and its accuracy rises over the steps of its training");
  const std::string means = figure.every == 1 ? "every step" : "means of " + std::to_string(figure.every) + " steps";
  svg.text(14, 24, "The toy learns to " + figure.task + ": " + means, Ink::text, 15);

  const double highest = std::max(figure.guess, *std::max_element(figure.loss.begin(), figure.loss.end()));
  Axis loss{.name = "loss per token", .low = 0, .high = std::ceil(highest * 2) / 2};
  for (int i = 0; i <= static_cast<int>(loss.high); ++i) loss.ticks.push_back({static_cast<double>(i), decimals(i, 0)});
  Chart left_chart(svg, {left, top, chart_width, height}, steps_axis(figure), loss);
  const auto level = [&](double at, const std::string& name, double below) {
    left_chart.curve({{0, at}, {static_cast<double>(figure.steps), at}}, Ink::second, {.width = 1.5, .dashed = true});
    const Point end = left_chart.place(figure.steps, at);
    svg.text(end.x - 6, end.y + below, name, Ink::second, 12, Anchor::end);
  };
  level(figure.guess, "guessing: " + decimals(figure.guess, 3), -6);
  level(figure.least, "the smallest there is: " + decimals(figure.least, 3), 16);
  left_chart.curve(over_steps(figure, figure.loss, 1), Ink::mark);

  Axis percent{.name = "next tokens predicted right, %", .low = 0, .high = 100};
  for (const int i : {0, 25, 50, 75, 100}) percent.ticks.push_back({static_cast<double>(i), std::to_string(i)});
  Chart right_chart(svg, {left + chart_width + between, top, chart_width, height}, steps_axis(figure), percent);
  right_chart.curve(over_steps(figure, figure.accuracy, 100), Ink::mark);
  return svg.str();
}

}  // namespace orrery
