// Chapter 9. The pictures of a trained toy: every head, one small map for each, attention by attention; and its
// training, the loss and the accuracy, step by step.
#include <algorithm>
#include <cmath>

#include "apps/show/figure/figures.h"
#include "apps/show/figure/svg.h"

namespace orrery {
namespace {

// One attention of the model: its heads layer by layer, and the labels of their rows and columns.
struct Section {
  std::string title;
  const std::vector<std::string>&rows, &columns;
  const std::vector<HeadMap>& maps;
};

std::vector<Section> sections_of(const HeadsFigure& figure) {
  return {{"encoder self-attention: the source reads the source", figure.source, figure.source, figure.encoder},
          {"decoder self-attention: the answer reads what is written of it", figure.input, figure.input,
           figure.decoder_self},
          {"cross-attention: each symbol, as it is written, reads the source", figure.written, figure.source,
           figure.decoder_cross}};
}

Json rounded(const std::vector<HeadMap>& maps) {
  Json result = Json::array();
  for (const HeadMap& map : maps) {
    Json weights = Json::array();
    for (const std::vector<double>& row : map.weights) {
      weights.push_back(Json::array());
      for (const double weight : row) weights.back().push_back(std::round(weight * 100) / 100);
    }
    result.push_back({{"layer", map.layer}, {"head", map.head}, {"weights", std::move(weights)}});
  }
  return result;
}

std::vector<HeadMap> read_maps(nn::config_json::Reader& read, const std::string& name) {
  std::vector<HeadMap> maps;
  read.for_each(name, [&](nn::config_json::Reader& read_map) {
    HeadMap map;
    read_map("layer", map.layer, 0, most_layers);
    read_map("head", map.head, 0, most_layers);
    read_map("weights", map.weights);
    maps.push_back(std::move(map));
  });
  return maps;
}

void check_map(const HeadMap& map, size_t rows, size_t columns) {
  const std::string name = "layer " + std::to_string(map.layer) + ", head " + std::to_string(map.head);
  check(map.weights.size() == rows, "figure", name, " has ", map.weights.size(), " rows of weights for ", rows,
        " symbols");
  for (const std::vector<double>& row : map.weights) {
    check(row.size() == columns, "figure", name, " has a row of ", row.size(), " weights for ", columns, " symbols");
    for (const double weight : row)
      check(weight >= 0 && weight <= 1, "figure", "a weight must be from 0 to 1, not ", weight);
  }
}

constexpr double width = 440, left = 24, right = 6, gap = 10, largest_cell = 12;
constexpr size_t most_beside = 4;  // maps side by side: a phone shows them large enough

// One map at (x, y); the labels of its rows, if drawn, stand to its left.
void draw_map(Svg& svg, const HeadMap& map, const Section& section, double x, double y, double cell,
              bool with_row_labels) {
  const double size = std::min(10.0, cell);
  svg.text(x, y - size - 5, "layer " + std::to_string(map.layer) + ", head " + std::to_string(map.head), Ink::note, 10);
  for (size_t j = 0; j < section.columns.size(); ++j)
    svg.text(x + (static_cast<double>(j) + 0.5) * cell, y - 3, section.columns[j], Ink::text, size, Anchor::middle);
  svg.box(x, y, cell * static_cast<double>(section.columns.size()), cell * static_cast<double>(section.rows.size()));
  for (size_t i = 0; i < section.rows.size(); ++i) {
    const double top = y + static_cast<double>(i) * cell;
    if (with_row_labels) svg.text(x - 5, top + cell * 0.8, section.rows[i], Ink::text, size, Anchor::end);
    for (size_t j = 0; j < section.columns.size(); ++j)
      if (map.weights[i][j] > 0)
        svg.rectangle(x + static_cast<double>(j) * cell, top, cell, cell, Ink::mark, map.weights[i][j]);
  }
}

}  // namespace

std::string to_json(const HeadsFigure& figure) {
  return Json{{"task", figure.task},
              {"source", figure.source},
              {"input", figure.input},
              {"written", figure.written},
              {"encoder", rounded(figure.encoder)},
              {"decoder_self", rounded(figure.decoder_self)},
              {"decoder_cross", rounded(figure.decoder_cross)}}
             .dump() +
         "\n";
}

HeadsFigure heads_figure(const std::string& text) {
  HeadsFigure figure = read_figure(text, [](nn::config_json::Reader& read) {
    HeadsFigure data;
    read("task", data.task);
    read("source", data.source);
    read("input", data.input);
    read("written", data.written);
    data.encoder = read_maps(read, "encoder");
    data.decoder_self = read_maps(read, "decoder_self");
    data.decoder_cross = read_maps(read, "decoder_cross");
    return data;
  });
  check(!figure.source.empty() && !figure.input.empty() && !figure.written.empty(), "figure", "has no symbols");
  for (const Section& section : sections_of(figure)) {
    check(!section.maps.empty(), "figure", "has no maps of ", section.title.substr(0, section.title.find(':')));
    for (const HeadMap& map : section.maps) check_map(map, section.rows.size(), section.columns.size());
  }
  return figure;
}

std::string draw(const HeadsFigure& figure) {
  const std::vector<Section> sections = sections_of(figure);
  size_t beside = 1;
  for (const Section& section : sections) beside = std::max(beside, std::min(most_beside, section.maps.size()));
  const double symbols = static_cast<double>(std::max(figure.source.size(), figure.input.size()));
  const double pitch = (width - left - right) / static_cast<double>(beside);
  const double cell = std::min(largest_cell, std::max(1.0, std::floor((pitch - gap) / symbols)));
  constexpr double top = 74, title_height = 46, line_height = 40, bottom = 4;
  const auto height_of = [&](const Section& section) {
    const double lines = std::ceil(static_cast<double>(section.maps.size()) / static_cast<double>(beside));
    return title_height - line_height + lines * (line_height + cell * static_cast<double>(section.rows.size()));
  };
  double height = top + bottom;
  for (const Section& section : sections) height += height_of(section) + gap;
  Svg svg(width, height, "Every head of a trained toy: how much each symbol reads of each other one");
  svg.text(14, 22, "What every head of the toy reads (task: " + figure.task + ")", Ink::text, 15);
  svg.text(14, 41, "A row reads, a column is read; the stronger the colour, the more.", Ink::note, 12);
  svg.text(14, 58, "^ begins the answer, . ends it.", Ink::note, 12);
  double y = top;
  for (const Section& section : sections) {
    svg.text(14, y + 14, section.title, Ink::text, 13);
    for (size_t k = 0; k < section.maps.size(); ++k) {
      const double line = static_cast<double>(k / beside), column = static_cast<double>(k % beside);
      const double map_y = y + title_height + line * (line_height + cell * static_cast<double>(section.rows.size()));
      draw_map(svg, section.maps[k], section, left + column * pitch, map_y, cell, k % beside == 0);
    }
    y += height_of(section) + gap;
  }
  return svg.str();
}

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
