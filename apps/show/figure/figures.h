// Chapter 9. The pictures of trainings and measurements, each drawn from numbers that stand in a file.
//
// What a training gives differs from CPU to CPU, so its numbers are rounded and kept in `apps/data/`; drawing them
// gives the same picture everywhere. A test compares each of these pictures with the one in `apps/book/figures/`, which
// has the book's other pictures, too: they were drawn once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "nn/models/config_json.h"

namespace orrery {

/// How much the data of a picture may be: bytes, values in JSON, and, of these values, weights of every head.
inline constexpr size_t most_figure_bytes = size_t{4} << 20;
inline constexpr i64 most_figure_values = 300'000;  // the weights of the longest sequences of `orrery toy`, 512 x 512
inline constexpr i64 most_head_weights = 200'000;
/// The largest number of a layer or a head that a picture's data may name: more than any model has.
inline constexpr i64 most_layers = 1000;

/// Draws a picture of numbers in JSON.
using Picture = std::string (*)(const std::string& data);
/// Every picture by its name that is drawn from numbers: `orrery figure NAME` draws it, `apps/book/figures/NAME.svg`
/// keeps it, and the numbers it needs are in `apps/data/NAME.json`.
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
/// A grid: a row for each symbol written, a column for each symbol read; the stronger the colour, the more.
std::string draw(const AttentionFigure& figure);

/// The attention weights of one head: weights[i][j] is how much of symbol j flows into symbol i.
struct HeadMap {
  int layer = 0, head = 0;
  std::vector<std::vector<double>> weights;  ///< rounded to two decimals
};
/// What every head of a trained toy looks at while the decoder is given the right answer.
struct HeadsFigure {
  std::string task;                  ///< "reverse"
  std::vector<std::string> source;   ///< what the encoder reads
  std::vector<std::string> input;    ///< what the decoder reads: the begin mark, and the answer
  std::vector<std::string> written;  ///< what it writes after each of these
  std::vector<HeadMap> encoder, decoder_self, decoder_cross;  ///< layer by layer
};
/// The figure as JSON, and back. Errors: text that does not describe one.
std::string to_json(const HeadsFigure& figure);
HeadsFigure heads_figure(const std::string& json);
/// A small grid for each head, in lines of at most 8.
std::string draw(const HeadsFigure& figure);

/// How a training went: the mean loss and the mean accuracy of each `every` steps.
struct LossFigure {
  std::string task;  ///< "reverse"
  int steps = 0, every = 0;
  double guess = 0;  ///< the loss where every token is held equally likely
  double least = 0;  ///< the smallest loss there is; above 0 with label smoothing
  std::vector<double> loss, accuracy;
};
/// The figure as JSON, losses and accuracies rounded to three decimals, and back. Errors: text that does not describe
/// one.
std::string to_json(const LossFigure& figure);
LossFigure loss_figure(const std::string& json);
/// Two charts: loss, between that of guessing and the smallest one, and accuracy.
std::string draw(const LossFigure& figure);

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

/// Calls read(reader of the parsed text). Errors: text that is not JSON, or that lacks a field `read` asks for.
template <class Read> auto read_figure(const std::string& text, const Read& read) {
  const Json data = parse_json_object(text, "figure", {.bytes = most_figure_bytes, .values = most_figure_values});
  nn::config_json::Reader reader("figure", data, nn::config_json::Fields::all);
  return read(reader);
}

/// `x` with this many digits after the point.
std::string decimals(double x, int digits);

}  // namespace orrery
