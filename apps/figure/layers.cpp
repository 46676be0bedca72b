// Chapter 9. The pictures of an encoder layer and of a decoder layer: what is computed, in which shape.
//
// Serves: nn/models/encoder.h
#include <string>
#include <vector>

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"

namespace orrery {
namespace {

// A row of the picture, from top to bottom.
struct Row {
  enum Kind { value, step, add } kind;
  std::string name;            // what stands in the box
  std::string shape;           // of what leaves it
  std::string note;            // the line of code, or what it means
  std::string second_shape{};  // of what leaves it too, if that differs
};

// Everything is centred on `axis`; residual connections run along `side`.
constexpr double axis = 250, layer_width = 250, layer_height = 28, row_height = 46, side = 110, top = 56;
constexpr double sum_radius = 11, beside_box = axis + layer_width / 2 + 14, beside_shape = beside_box + 124;

double middle(size_t row) { return top + static_cast<double>(row) * row_height + layer_height / 2; }

// Where a value goes around a sub-layer: from below `from` to the circle of `to`.
void draw_residual(Svg& svg, size_t from, size_t to) {
  const double fork = middle(from) + layer_height / 2 + 5;
  svg.polyline({{axis, fork}, {side, fork}, {side, middle(to)}}, Ink::second, {.width = 1.5});
  svg.arrow(side, middle(to), axis - sum_radius - 1, middle(to), Ink::second, {.width = 1.5});
}

// From the middle of a row to its edge.
double half_height(const Row& row) { return row.kind == Row::add ? sum_radius : layer_height / 2; }

void draw_shape(Svg& svg, const Row& row, double y) {
  const bool two_shapes = !row.second_shape.empty();
  svg.text(beside_box, two_shapes ? y - 4 : y + 4, row.shape, Ink::text, 12);
  if (two_shapes) svg.text(beside_box, y + 12, row.second_shape, Ink::text, 12);
}

void draw_rows(Svg& svg, const std::vector<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const double y = middle(i), edge = y - half_height(row);
    if (i > 0) svg.arrow(axis, middle(i - 1) + half_height(rows[i - 1]), axis, edge, Ink::text);
    if (row.kind == Row::step) {
      svg.rectangle(axis - layer_width / 2, edge, layer_width, layer_height, Ink::mark, 0.15);
      svg.box(axis - layer_width / 2, edge, layer_width, layer_height, Ink::mark);
    }
    if (row.kind == Row::add) {
      svg.circle(axis, y, sum_radius, Ink::second, 0.3);
      svg.text(axis, y + 5, row.name, Ink::text, 16, Anchor::middle);
    } else {
      svg.text(axis, y + 4, row.name, Ink::text, 13, Anchor::middle);
    }
    draw_shape(svg, row, y);
    svg.text(beside_shape, y + 4, row.note, Ink::note, 12);
  }
}

// The rows of an attention; `queries` and `keys` are names of lengths. Where they differ, so do the shapes of Q and of
// K and V.
std::vector<Row> attention_rows(const std::string& queries, const std::string& keys, const std::string& projection,
                                const std::string& note) {
  const std::string of_queries = "[B, h, " + queries + ", d_k]", of_keys = "[B, h, " + keys + ", d_k]";
  return {
      queries == keys ? Row{Row::step, projection, of_queries, note}
                      : Row{Row::step, projection, "Q: " + of_queries, note, "K, V: " + of_keys},
      {Row::step, "scores = Q K^T / sqrt(d_k), masked", "[B, h, " + queries + ", " + keys + "]", "core/mask.h"},
      {Row::step, "weights = softmax of each row", "[B, h, " + queries + ", " + keys + "]", "each row adds up to 1"},
      {Row::step, "weights V, heads joined, out_proj", "[B, " + queries + ", d_model]", "sums of values, mixed"}};
}

void append(std::vector<Row>& rows, const std::vector<Row>& more) { rows.insert(rows.end(), more.begin(), more.end()); }

// The sum with what went around, its norm, and what both give.
std::vector<Row> sum_and_norm(const std::string& length, const std::string& norm) {
  const std::string shape = "[B, " + length + ", d_model]";
  return {{Row::add, "+", shape, "x + dropout(sublayer(x))"}, {Row::step, norm, shape, "mean 0, variance 1"}};
}

std::vector<Row> feed_forward_rows(const std::string& length) {
  return {{Row::step, "linear1, ReLU", "[B, " + length + ", d_ff]", "each position alone"},
          {Row::step, "linear2", "[B, " + length + ", d_model]", ""}};
}

double height_of(const std::vector<Row>& rows) { return top + static_cast<double>(rows.size()) * row_height + 8; }

}  // namespace

std::string draw_encoder_layer() {
  std::vector<Row> rows{{Row::value, "x", "[B, S, d_model]", "from the embedding, or the layer before"}};
  append(rows, attention_rows("S", "S", "Q, K, V = in_proj(x), cut into heads", "self_attn"));
  const size_t sum1 = rows.size(), norm1 = sum1 + 1;
  append(rows, sum_and_norm("S", "norm1"));
  append(rows, feed_forward_rows("S"));
  const size_t sum2 = rows.size();
  append(rows, sum_and_norm("S", "norm2"));
  rows.push_back({Row::value, "y", "[B, S, d_model]", "to the next layer, or as the memory"});
  Svg svg(760, height_of(rows), "An encoder layer: self-attention and feed-forward, each with sum and norm");
  svg.text(14, 24, "An encoder layer, and the shape of what leaves each box", Ink::text, 15);
  draw_rows(svg, rows);
  draw_residual(svg, 0, sum1);
  draw_residual(svg, norm1, sum2);
  return svg.str();
}

std::string draw_decoder_layer() {
  std::vector<Row> rows{{Row::value, "x", "[B, T, d_model]", "the target so far"}};
  append(rows, attention_rows("T", "T", "Q, K, V = in_proj(x), cut into heads", "self_attn, causal mask"));
  const size_t sum1 = rows.size(), norm1 = sum1 + 1;
  append(rows, sum_and_norm("T", "norm1"));
  const size_t cross_attention = rows.size();
  append(rows, attention_rows("T", "S", "Q of x;  K, V of the memory", "multihead_attn"));
  const size_t sum2 = rows.size(), norm2 = sum2 + 1;
  append(rows, sum_and_norm("T", "norm2"));
  append(rows, feed_forward_rows("T"));
  const size_t sum3 = rows.size();
  append(rows, sum_and_norm("T", "norm3"));
  rows.push_back({Row::value, "y", "[B, T, d_model]", "to the next layer, or to the generator"});
  Svg svg(760, height_of(rows),
          "A decoder layer: self-attention, cross-attention and feed-forward, with sums and norms");
  svg.text(14, 24, "A decoder layer, and the shape of what leaves each box", Ink::text, 15);
  draw_rows(svg, rows);
  draw_residual(svg, 0, sum1);
  draw_residual(svg, norm1, sum2);
  draw_residual(svg, norm2, sum3);
  const double memory = middle(cross_attention);
  svg.text(14, memory - 6, "memory", Ink::text, 13);
  svg.text(14, memory + 22, "[B, S, d_model]", Ink::note, 11);
  svg.arrow(14, memory + 6, axis - layer_width / 2, memory + 6, Ink::mark, {.width = 1.5});
  return svg.str();
}

}  // namespace orrery
