// Chapter 9. `orrery figure`: draws the pictures of the README and of the book as SVG. Here are those of one head and
// of our speed.
#include "apps/show/figure/figures.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/shipped_files.h"
#include "apps/program/terminal.h"
#include "apps/show/figure/svg.h"
#include "core/error.h"
#include "core/files/file.h"

namespace orrery {

std::string decimals(double x, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << x;
  return out.str();
}

std::string to_json(const AttentionFigure& figure) {
  Json result{{"task", figure.task},       {"layer", figure.layer}, {"head", figure.head},
              {"written", figure.written}, {"read", figure.read},   {"weights", Json::array()}};
  for (const std::vector<double>& row : figure.weights) {
    Json rounded = Json::array();
    for (const double weight : row) rounded.push_back(std::round(weight * 100) / 100);
    result["weights"].push_back(std::move(rounded));
  }
  return result.dump() + "\n";
}

AttentionFigure attention_figure(const std::string& text) {
  AttentionFigure figure = read_figure(text, [](nn::config_json::Reader& read) {
    AttentionFigure data{.task = {}, .written = {}, .read = {}, .weights = {}};
    read("task", data.task);
    read("layer", data.layer, 0, most_layers);
    read("head", data.head, 0, most_layers);
    read("written", data.written);
    read("read", data.read);
    read("weights", data.weights);
    return data;
  });
  check(figure.weights.size() == figure.written.size(), "figure", "has ", figure.weights.size(),
        " rows of weights for ", figure.written.size(), " symbols written");
  for (const std::vector<double>& row : figure.weights) {
    check(row.size() == figure.read.size(), "figure", "has a row of ", row.size(), " weights for ", figure.read.size(),
          " symbols read");
    for (const double weight : row)
      check(weight >= 0 && weight <= 1, "figure", "a weight must be from 0 to 1, not ", weight);
  }
  return figure;
}

std::string draw(const AttentionFigure& figure) {
  constexpr double cell = 26, left = 74, top = 66, right = 16, bottom = 30, gap = 2;
  const double columns = static_cast<double>(figure.read.size()), rows = static_cast<double>(figure.written.size());
  const double width = std::max(480.0, left + columns * cell + right);
  Svg svg(width, top + rows * cell + bottom,
          "Attention of one head while the model writes: each row shows how much it reads of each symbol");
  svg.text(14, 22, "What one head reads while the model writes", Ink::text, 15);
  svg.text(left, 44, "reads", Ink::note, 12);
  svg.text(14, top + cell * 0.68, "writes", Ink::note, 12);
  for (size_t j = 0; j < figure.read.size(); ++j)
    svg.text(left + (static_cast<double>(j) + 0.5) * cell, top - 7, figure.read[j], Ink::text, 14, Anchor::middle);
  for (size_t i = 0; i < figure.written.size(); ++i) {
    const double y = top + static_cast<double>(i) * cell;
    svg.text(left - 9, y + cell * 0.68, figure.written[i], Ink::text, 14, Anchor::end);
    for (size_t j = 0; j < figure.read.size(); ++j) {
      const double x = left + static_cast<double>(j) * cell;
      svg.rectangle(x, y, cell - gap, cell - gap, Ink::frame);
      if (figure.weights[i][j] > 0) svg.rectangle(x, y, cell - gap, cell - gap, Ink::mark, figure.weights[i][j]);
    }
  }
  svg.text(14, top + rows * cell + 18,
           "task: " + figure.task + "; decoder layer " + std::to_string(figure.layer) + ", head " +
               std::to_string(figure.head) + "; the stronger the colour, the more",
           Ink::note, 12);
  return svg.str();
}

SpeedFigure speed_figure(const std::string& text) {
  return read_figure(text, [](nn::config_json::Reader& read) {
    SpeedFigure figure{.machine = {}, .rows = {}};
    read("machine", figure.machine);
    read.for_each("rows", [&](nn::config_json::Reader& read_row) {
      SpeedRow row;
      read_row("config", row.config);
      const auto read_positive = [&](const std::string& name, double& value) {
        read_row(name, value);
        check(value > 0, "figure", name, " must be positive, not ", value);
      };
      read_positive("pytorch_ms", row.pytorch_ms);
      read_positive("orrery_ms", row.orrery_ms);
      read_positive("limit_ms", row.limit_ms);
      read_positive("pytorch_mb", row.pytorch_mb);
      read_positive("orrery_mb", row.orrery_mb);
      figure.rows.push_back(std::move(row));
    });
    return figure;
  });
}

std::string draw(const SpeedFigure& figure) {
  constexpr double left = 92, full = 270, right = 72, top = 76, bar = 11, row_height = 34, bottom = 46;
  Svg svg(left + full + right, top + static_cast<double>(figure.rows.size()) * row_height + bottom,
          "Time of a training step: PyTorch and Orrery side by side");
  svg.text(14, 22, "Time of a training step: shorter is better", Ink::text, 15);
  svg.rectangle(left, 34, bar, bar, Ink::beside);
  svg.text(left + 16, 44, "PyTorch", Ink::note, 12);
  svg.rectangle(left + 80, 34, bar, bar, Ink::mark);
  svg.text(left + 96, 44, "Orrery", Ink::note, 12);
  svg.text(14, 64, "each pair has its own scale: PyTorch's bar is always full", Ink::note, 12);
  for (size_t i = 0; i < figure.rows.size(); ++i) {
    const SpeedRow& row = figure.rows[i];
    const double y = top + static_cast<double>(i) * row_height, part = row.orrery_ms / row.pytorch_ms;
    svg.text(left - 9, y + 16, row.config, Ink::text, 13, Anchor::end);
    svg.rectangle(left, y, full, bar, Ink::beside);
    svg.text(left + full + 8, y + 10, decimals(row.pytorch_ms, row.pytorch_ms < 100 ? 1 : 0) + " ms", Ink::note, 11);
    svg.rectangle(left, y + bar + 2, full * part, bar, Ink::mark);
    svg.text(left + full * part + 8, y + bar + 12,
             decimals(row.orrery_ms, row.orrery_ms < 100 ? 1 : 0) + " ms, " +
                 decimals(row.pytorch_ms / row.orrery_ms, 1) + " times faster",
             Ink::text, 11);
  }
  std::istringstream machine(wrapped(figure.machine, 0, 60, 0));
  std::string line;
  for (double y = top + static_cast<double>(figure.rows.size()) * row_height + 16; std::getline(machine, line); y += 15)
    svg.text(14, y, line, Ink::note, 11);
  return svg.str();
}

namespace {

struct FigureOptions {
  std::string name, data, out;
};

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, picture] : pictures()) result.push_back(name);
  return result;
}

std::string drawn_from(const std::string& path, Picture draw) {
  const InputFile file(path);
  check(file.size() <= most_figure_bytes, "figure", path, " has ", file.size(),
        " bytes: this is not the data of a picture");
  return within("read " + path, [&] { return draw(file.text()); });
}

int run(const FigureOptions& options) {
  const std::string data = options.data.empty() ? shipped_path("apps/data/" + options.name + ".json") : options.data;
  check_can_write_text("figure", "--out", options.out);
  check(!is_same_file(options.out, data), "figure", "--out ", options.out, " would write over the numbers to draw");
  const std::string drawn = drawn_from(data, pictures().at(options.name));
  if (options.out.empty())
    std::cout << drawn << std::flush;
  else
    write_text(options.out, drawn);
  return done;
}

}  // namespace

const std::map<std::string, Picture>& pictures() {
  static const std::map<std::string, Picture> all{
      {"attention", [](const std::string& data) { return draw(attention_figure(data)); }},
      {"speed", [](const std::string& data) { return draw(speed_figure(data)); }},
      {"toy_heads", [](const std::string& data) { return draw(heads_figure(data)); }},
      {"toy_loss", [](const std::string& data) { return draw(loss_figure(data)); }}};
  return all;
}

void add_figure(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App& command = add_command(program, "figure", "Draw a picture of the README or of the book, as SVG",
                                  "Examples:\n  orrery figure attention --out attention.svg\n"
                                  "  orrery toy --attention a.json && orrery figure attention --data a.json > a.svg");
  require(add_choice(command, "PICTURE", options->name, names(), "Which picture"));
  add_file(command, "--data", options->data, "Numbers to draw; without it those that come with the program");
  add_output_file(command, "--out", options->out, "Write the picture to this file; without it to stdout");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
