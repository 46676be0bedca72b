// Chapter 9. The picture of every head of a trained toy: one small map for each, attention by attention.
#include <algorithm>
#include <cmath>

#include "apps/show/figure/figure_data.h"
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

}  // namespace orrery
