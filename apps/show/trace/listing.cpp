// Chapter 9. The pass as text.
#include "apps/show/trace/model_pass.h"

#include <algorithm>
#include <sstream>

#include "apps/program/columns.h"

namespace orrery {
namespace {

constexpr size_t values_shown = 4, values_width = 35;

// A number that a mask hides is a dash.
std::string first_values(const Tensor& x, const std::vector<i64>& masked = {}) {
  std::string result;
  for (i64 i = 0; i < std::min<i64>(x.count(), values_shown); ++i) {
    const bool hidden = std::find(masked.begin(), masked.end(), i) != masked.end();
    result += hidden ? "       -" : numbers("%8.4f", shown(x.at(i)));
  }
  return result + (x.count() > static_cast<i64>(values_shown) ? " .." : "");
}

std::string shape_of(const Tensor& x) {
  std::ostringstream out;
  out << x.shape();
  return out.str();
}

std::string names_and_shapes(const std::vector<TracedValue>& values) {
  std::vector<std::string> parts;
  for (const TracedValue& value : values) parts.push_back(value.name + " " + shape_of(value.value));
  return joined(parts, " ");
}

// `left`, and `right` at the end of the line.
std::string two_sides(const std::string& left, const std::string& right) {
  const size_t room = table_width - std::min(table_width, right.size() + 1);
  const std::string line = fitted(left, room) + " " + right;
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

void print_box(std::ostream& out, const TracedBox& box) { out << "\n" << two_sides(box.title, box.source.str()); }

// An equation that does not fit beside the source goes on in the next line.
void print_step(std::ostream& out, const TracedStep& step) {
  const std::string of = step.is_backward() ? " (" + std::to_string(step.forward) + ")" : "";
  const std::string head = numbers("%4d ", static_cast<int>(step.number)) + fitted(step.operation + of, 19) + " ";
  const std::string source = operation_source(step.operation, step.is_backward() ? "backward" : "forward").str();
  std::istringstream equation(wrapped(step.equation, 0, table_width - head.size() - source.size() - 1, 0));
  std::string line;
  std::getline(equation, line);
  out << two_sides(head + line, source);
  while (std::getline(equation, line)) out << two_sides(std::string(head.size(), ' ') + line, "");
  out << two_sides("    " + names_and_shapes(step.inputs) + " -> " + names_and_shapes(step.outputs),
                   fitted(first_values(step.outputs.at(0).value, step.outputs.at(0).masked), values_width));
  if (!step.inside.empty())
    out << two_sides("    inside: " + names_and_shapes(step.inside),
                     fitted(first_values(step.inside[0].value), values_width));
}

void print_intro(std::ostream& out, const ModelPass& pass) {
  out << wrapped(introduction(pass), 0, table_width, 0) << "\n"
      << wrapped(
             "Each step shows its number, the operation, what it computes, and the line of its code; below that the "
             "names and shapes of what goes in and comes out, and the first values of the first result. A dash stands "
             "for what a mask hides. A heading names the box of the paper's Figure 1, and the line at which the model "
             "computes it.",
             0, table_width, 0);
}

}  // namespace

void print_pass(std::ostream& out, const ModelPass& pass) {
  print_intro(out, pass);
  std::string box;
  bool backward = true;
  for (const TracedStep& step : pass.steps) {
    if (step.is_backward() != backward) {
      backward = step.is_backward();
      box.clear();
      out << (backward ? "\nBACKWARD, newest operation first. matmul (7) is the derivative of step 7.\n"
                       : "\nFORWARD\n");
    }
    if (step.box != box) {
      box = step.box;
      print_box(out,
                *std::find_if(pass.boxes.begin(), pass.boxes.end(), [&](const TracedBox& b) { return b.id == box; }));
    }
    print_step(out, step);
  }
  out << "\nGRADIENTS of the parameters, as an optimiser gets them\n";
  for (const TracedParameter& p : pass.parameters)
    out << two_sides("    " + p.name + " " + shape_of(p.value), fitted(first_values(p.gradient), values_width));
  out << numbers("\nloss %.4f, %d steps\n", shown(pass.loss), static_cast<int>(pass.steps.size()));
}

}  // namespace orrery
