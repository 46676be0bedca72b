// Chapter 9. Pictures of derivatives: the error of numeric ones, and activations with their slopes.
//
// The errors are those of f(x) = 1 / x at x = 1.7. It is made of one addition and one division, which IEEE 754 rounds
// alike on every CPU, and x + h is exact for the steps here. So the noise in the picture is the same everywhere.
#include <cmath>
#include <limits>

#include "apps/show/figure/chart.h"
#include "apps/show/figure/figures.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Three ways to ask f for its slope at x.
enum class Stencil { one_sided, central, four_points };

template <class T>
T slope(Stencil stencil, T x, T h) {
  const auto f = [](T at) { return 1 / at; };
  switch (stencil) {
    case Stencil::one_sided: return (f(x + h) - f(x)) / h;
    case Stencil::central: return (f(x + h) - f(x - h)) / (2 * h);
    case Stencil::four_points: break;
  }
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

// The error at each step 2^-1, 3 2^-3, 2^-2, ... that still changes x.
template <class T>
std::vector<Point> errors(Stencil stencil) {
  constexpr T x = T{1.7};
  constexpr double right = -1 / (double{x} * double{x});
  std::vector<Point> result;
  for (T power = 0.5; power > 2 * std::numeric_limits<T>::epsilon(); power /= 2)
    for (const T h : {power, power * T{0.75}}) result.push_back({h, std::fabs(slope<T>(stencil, x, h) - right)});
  return result;
}

std::vector<Tick> powers_of_ten(int first, int last, int step) {
  std::vector<Tick> ticks;
  for (int power = first; power <= last; power += step) {
    const std::string label = power == 0 ? "1" : "1e" + std::to_string(power);
    ticks.push_back({std::stod(label), label});
  }
  return ticks;
}

// f and its slope on [-4, 4], as the library computes them. `jumps` at 0: no line is drawn across.
void draw_activation(Svg& svg, const Area& area, const std::string& name, Variable (*f)(const Variable&), bool jumps) {
  constexpr i64 steps = 64;
  Chart chart(svg, area, {"", -4, 4, {{-4, "-4"}, {-2, "-2"}, {0, "0"}, {2, "2"}, {4, "4"}}},
              {"", -1.5, 3, {{-1, "-1"}, {0, "0"}, {1, "1"}, {2, "2"}, {3, "3"}}});
  svg.text(area.x + 8, area.y + 18, name, Ink::text, 13);
  Tensor x = Tensor::empty({2 * steps + 1}, f64);
  for (i64 i = 0; i <= 2 * steps; ++i) x.set(i, static_cast<double>(i - steps) / (steps / 4));
  const Variable in = parameter(x), y = f(in);
  backward(y, full(x.shape(), 1, f64));
  std::vector<Point> value, left, right;
  for (i64 i = 0; i <= 2 * steps; ++i) {
    if (y.value().at(i) <= 3) value.push_back({x.at(i), y.value().at(i)});
    (x.at(i) <= 0 ? left : right).push_back({x.at(i), in.gradient().at(i)});
  }
  if (!jumps) left.push_back(right.front());
  chart.curve(value, Ink::mark);
  chart.curve(left, Ink::second, {.width = 2, .dashed = true});
  chart.curve(right, Ink::second, {.width = 2, .dashed = true});
}

}  // namespace

std::string draw_eps() {
  Svg svg(760, 452, "The error of a numeric derivative against its step: it falls with the step, then rounding rises");
  svg.text(14, 22, "The error of a numeric derivative, f(x) = 1/x at x = 1.7", Ink::text, 15);
  Chart chart(svg, {62, 62, 520, 340}, {"step h", 1e-16, 1, powers_of_ten(-15, 0, 3), true},
              {"error", 1e-16, 1, powers_of_ten(-15, 0, 3), true});
  const Point low = chart.place(1e-3, 1e-16), high = chart.place(1e-3, 1);
  svg.line(low.x, low.y, high.x, high.y, Ink::note, {.dashed = true});
  svg.text(low.x - 6, high.y + 16, "h = 1e-3", Ink::note, 12, Anchor::end);
  chart.curve(errors<double>(Stencil::one_sided), Ink::beside);
  chart.curve(errors<float>(Stencil::four_points), Ink::beside, {.width = 2, .dashed = true});
  chart.curve(errors<double>(Stencil::central), Ink::second);
  chart.curve(errors<double>(Stencil::four_points), Ink::mark);
  struct Label {
    const char *words, *more;
    Ink ink;
    bool dashed;
  };
  double y = 84;
  for (const Label& label : {Label{"four points", "error h^4, then noise", Ink::mark, false},
                             {"central", "error h^2, then noise", Ink::second, false},
                             {"one-sided", "error h, then noise", Ink::beside, false},
                             {"four points in f32", "noise at every step", Ink::beside, true}}) {
    svg.line(600, y - 4, 622, y - 4, label.ink, {.width = 2, .dashed = label.dashed});
    svg.text(628, y, label.words, Ink::text, 12);
    svg.text(628, y + 16, label.more, Ink::note, 11);
    y += 44;
  }
  return svg.str();
}

std::string draw_activations() {
  Svg svg(760, 428, "Five activation functions and their slopes");
  svg.text(14, 22, "Activation functions", Ink::text, 15);
  const auto place = [](int panel) { return Area{36 + 246.0 * (panel % 3), 40 + 194.0 * (panel / 3), 216, 156}; };
  draw_activation(svg, place(0), "relu", relu, true);
  draw_activation(svg, place(1), "gelu", gelu, false);
  draw_activation(svg, place(2), "silu", silu, false);
  draw_activation(svg, place(3), "sigmoid", sigmoid, false);
  draw_activation(svg, place(4), "tanh", tanh, false);
  const Area legend = place(5);
  svg.line(legend.x, legend.y + 14, legend.x + 24, legend.y + 14, Ink::mark, {.width = 2});
  svg.text(legend.x + 32, legend.y + 18, "the value y", Ink::text);
  svg.line(legend.x, legend.y + 38, legend.x + 24, legend.y + 38, Ink::second, {.width = 2, .dashed = true});
  svg.text(legend.x + 32, legend.y + 42, "its slope dy/dx", Ink::text);
  double y = legend.y + 74;
  for (const char* formula : {"relu: max(0, x), with a kink at 0", "gelu: x P(X < x) for X from N(0, 1)",
                              "silu: x s(x)", "sigmoid: s(x) = 1 / (1 + 1/e^x)", "tanh: 2 s(2x) - 1"}) {
    svg.text(legend.x, y, formula, Ink::note, 12);
    y += 17;
  }
  return svg.str();
}

}  // namespace orrery
