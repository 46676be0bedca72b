// Chapter 9. The pictures of this project, each drawn from numbers that stand in a file, or computed exactly.
//
// What a training gives differs from CPU to CPU, so its numbers are rounded and kept in `apps/data/`; drawing them
// gives the same picture everywhere. What is computed exactly needs no file. A test compares every picture with the one
// in `apps/book/figures/`.
// Serves: apps/toy/toy.cpp
#pragma once

#include <map>
#include <string>
#include <vector>

namespace orrery {

/// How a picture is made. One that is computed exactly reads no data: `draw` ignores its argument.
struct Picture {
  std::string (*draw)(const std::string& data) = nullptr;
  bool needs_data = true;
};
/// Every picture by its name: `orrery figure NAME` draws it, `apps/book/figures/NAME.svg` keeps it, and the numbers it
/// needs are in `apps/data/NAME.json`.
const std::map<std::string, Picture>& pictures();

/// What one head of a trained toy looks at: weights[i][j] is how much of read[j] flows into written[i].
struct AttentionFigure {
  std::string task;  ///< "reverse"
  int layer = 0, head = 0;
  std::vector<std::string> written, read;
  std::vector<std::vector<double>> weights;  ///< rounded to two decimals
};
/// The figure as JSON, and back. Errors: text that does not describe one.
std::string to_json(const AttentionFigure& figure);
AttentionFigure attention_figure(const std::string& json);
/// A grid: a row for each symbol written, a column for each symbol read, the darker the more.
std::string draw(const AttentionFigure& figure);

/// A training step of one configuration, as the comparison with PyTorch measured it.
struct SpeedRow {
  std::string config;
  double pytorch_ms = 0, orrery_ms = 0, limit_ms = 0;
  double pytorch_mb = 0, orrery_mb = 0;
};
struct SpeedFigure {
  std::string machine;  ///< processor, compiler, libraries, date: one line
  std::vector<SpeedRow> rows;
};
/// Errors: text that does not describe one.
SpeedFigure speed_figure(const std::string& json);
/// Two bars a configuration: PyTorch's time and ours, as parts of PyTorch's.
std::string draw(const SpeedFigure& figure);

// Chapter 6 (apps/figure/masks.cpp, apps/figure/positions.cpp): a padding, a causal and a window mask, and all three;
// the sinusoidal encodings as a grid.
std::string draw_masks();
std::string draw_positions();
// Chapter 7 (apps/figure/layers.cpp): the two layers of the Transformer with their shapes.
std::string draw_encoder_layer();
std::string draw_decoder_layer();

}  // namespace orrery
