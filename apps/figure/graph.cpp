// Chapter 9. Pictures of a tape: its nodes, with the value and the gradient of each, and the slopes between them.
//
// What is drawn is what the engine recorded: edges are those of the tape, and an observer notes what flows back.
// Serves: apps/book/ch2/tape.cpp
#include <algorithm>
#include <map>
#include <sstream>

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"
#include "autograd/observer.h"
#include "autograd/ops.h"

namespace orrery {
namespace {

// One number of the computation, and where its box stands: its centre.
struct Box {
  std::string label;
  Variable number;
  Point at;
};

struct Arrow {
  const Box *from, *to;
  size_t input;  // of `to`
};

constexpr double node_width = 116, node_height = 66;

// Notes the gradient that each operation finds, and what it adds to those of its inputs.
struct Notes : Observer {
  bool changes_contributions() const override { return true; }
  void backward_begins(const Node& node) override { gradient[&node] = node.outputs[0].gradient.item(); }
  void contribution(const Node& node, size_t input, Tensor& g) override { added[{&node, input}] = g.item(); }
  std::map<const Node*, double> gradient;
  std::map<std::pair<const Node*, size_t>, double> added;
};

std::string written(const std::string& name, double number) {
  std::ostringstream out;
  out << name << ' ' << number;
  return out.str();
}

std::vector<Arrow> arrows_between(const std::vector<Box>& boxes) {
  std::vector<Arrow> result;
  for (const Box& to : boxes) {
    const auto& inputs = to.number.node()->inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto from =
          std::find_if(boxes.begin(), boxes.end(), [&](const Box& box) { return box.number.node() == inputs[i].node; });
      if (from != boxes.end()) result.push_back({&*from, &to, i});
    }
  }
  return result;
}

// From the right side of one box to the left side of another, with the slope above its middle.
void draw_arrow(Svg& svg, const Arrow& arrow, double slope) {
  const double x1 = arrow.from->at.x + node_width / 2, x2 = arrow.to->at.x - node_width / 2 - 3;
  const double y1 = arrow.from->at.y;
  double y2 = arrow.to->at.y;
  if (y1 < arrow.to->at.y) y2 -= 14;
  if (y1 > arrow.to->at.y) y2 += 14;
  svg.arrow(x1, y1, x2, y2, Ink::note);
  Anchor anchor = Anchor::middle;
  if (y1 < y2) anchor = Anchor::start;
  if (y1 > y2) anchor = Anchor::end;
  svg.text((x1 + x2) / 2, (y1 + y2) / 2 - 7, written("slope", slope), Ink::note, 12, anchor);
}

void draw_box(Svg& svg, const Box& box, double gradient) {
  const double left = box.at.x - node_width / 2, top = box.at.y - node_height / 2;
  svg.box(left, top, node_width, node_height);
  svg.text(box.at.x, top + 20, box.label, Ink::text, 14, Anchor::middle);
  svg.text(box.at.x, top + 39, written("value", box.number.item()), Ink::mark, 13, Anchor::middle);
  svg.text(box.at.x, top + 57, written("gradient", gradient), Ink::second, 13, Anchor::middle);
}

// The last box is y: backward starts there.
std::string draw_graph(Svg svg, const std::vector<Box>& boxes) {
  const std::vector<Arrow> arrows = arrows_between(boxes);
  Notes notes;
  const ObserverScope scope(notes);
  backward(boxes.back().number);
  for (const Arrow& arrow : arrows) {
    const Node* to = arrow.to->number.node().get();
    draw_arrow(svg, arrow, notes.added.at({to, arrow.input}) / notes.gradient.at(to));
  }
  for (const Box& box : boxes)
    draw_box(svg, box,
             box.number.is_leaf() ? box.number.gradient().item() : notes.gradient.at(box.number.node().get()));
  return svg.str();
}

Variable leaf(double value) { return parameter(Tensor::of<double>({}, {value})); }

}  // namespace

std::string draw_tape() {
  Svg svg(620, 330, "The graph of y = a b + c for a = 2, b = 3, c = 4, with the value and the gradient of every node");
  svg.text(14, 22, "The graph of y = a b + c", Ink::text, 15);
  svg.text(14, 42, "values are computed from left to right, gradients from right to left", Ink::note, 12);
  const Variable a = leaf(2), b = leaf(3), c = leaf(4), product = a * b, y = product + c;
  return draw_graph(svg, {{"a", a, {72, 92}},
                          {"b", b, {72, 182}},
                          {"c", c, {302, 282}},
                          {"mul: a b", product, {302, 137}},
                          {"add: y", y, {532, 210}}});
}

std::string draw_twice() {
  Svg svg(760, 250, "The graph of y = u + v with u = 2 a and v = 3 u: u has two users, and its gradient two parts");
  svg.text(14, 22, "A number with two users: y = u + v, where u = 2 a and v = 3 u", Ink::text, 15);
  svg.text(14, 42, "u receives 1 from y and 3 from v: its gradient is the sum, 4", Ink::note, 12);
  const Variable a = leaf(1), u = scale(a, 2), v = scale(u, 3), y = u + v;
  return draw_graph(svg, {{"a", a, {72, 182}},
                          {"scale: u = 2 a", u, {274, 182}},
                          {"scale: v = 3 u", v, {484, 100}},
                          {"add: y = u + v", y, {688, 182}}});
}

}  // namespace orrery
