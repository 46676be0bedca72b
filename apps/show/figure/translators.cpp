// Chapter 9. The picture of three translators: attention, convolution and recurrence learn from the same sentences.
#include <algorithm>
#include <cmath>

#include "apps/show/figure/figure_data.h"
#include "apps/show/figure/figures.h"
#include "apps/show/figure/svg.h"

namespace orrery {
namespace {

constexpr double lowest_loss = 1.5, highest_loss = 5;  // losses below and above stand at the edge of the chart

Ink ink_of(const std::string& model) {
  if (model == "transformer") return Ink::mark;
  if (model == "recurrent") return Ink::second;
  return Ink::note;
}

TranslatorCurve curve_of(nn::config_json::Reader& read) {
  TranslatorCurve curve{.model = {}, .minutes = {}, .losses = {}};
  read("model", curve.model);
  read("minutes", curve.minutes);
  read("losses", curve.losses);
  check(curve.losses.size() == curve.minutes.size() && curve.losses.size() > 1, "figure", "a curve of ", curve.model,
        " has ", curve.minutes.size(), " times and ", curve.losses.size(), " losses");
  check(std::is_sorted(curve.minutes.begin(), curve.minutes.end()), "figure", "the times of ", curve.model, " go back");
  for (const double minutes : curve.minutes) check(minutes >= 0 && minutes <= 1e6, "figure", minutes, " minutes");
  for (const double loss : curve.losses) check(loss >= 0 && loss <= 1000, "figure", "a loss of ", loss);
  return curve;
}

}  // namespace

TranslatorsFigure translators_figure(const std::string& text) {
  return read_figure(text, [](nn::config_json::Reader& read) {
    TranslatorsFigure figure{.note = {}, .curves = {}};
    read("note", figure.note);
    read.for_each("curves", [&](nn::config_json::Reader& curve) { figure.curves.push_back(curve_of(curve)); });
    check(!figure.curves.empty(), "figure", "has no curves");
    return figure;
  });
}

std::string draw(const TranslatorsFigure& figure) {
  constexpr double left = 50, top = 64, width = 420, height = 240, right = 30;
  Svg svg(left + width + right, top + height + 66,
          "Validation loss of three kinds of translators over the time of their training");
  svg.text(14, 24, "Three kinds of translators learn from the same sentences", Ink::text, 15);

  double longest = 1;
  for (const TranslatorCurve& curve : figure.curves) longest = std::max(longest, curve.minutes.back());
  Axis time{.name = "minutes of training", .low = 0, .high = std::ceil(longest / 10) * 10};
  for (double at = 0; at <= time.high; at += time.high / 4)
    time.ticks.push_back({at, decimals(at, at == std::floor(at) ? 0 : 1)});
  Axis loss{.name = "validation loss per token", .low = lowest_loss, .high = highest_loss};
  for (double at = lowest_loss; at <= highest_loss; at += 0.5) loss.ticks.push_back({at, decimals(at, 1)});

  Chart chart(svg, {left, top, width, height}, time, loss);
  double name_at = top + 24;
  std::string named;
  for (const TranslatorCurve& curve : figure.curves) {
    std::vector<Point> points;
    for (size_t i = 0; i < curve.losses.size(); ++i) points.push_back({curve.minutes[i], curve.losses[i]});
    chart.curve(points, ink_of(curve.model), {.width = 1.5});
    if (curve.model == named) continue;
    named = curve.model;
    svg.text(left + width - 12, name_at, named, ink_of(named), 13, Anchor::end);
    name_at += 20;
  }
  svg.text(14, top + height + 56, figure.note, Ink::note, 11);
  return svg.str();
}

}  // namespace orrery
