// Chapter 9. `orrery trace`: one forward and backward pass of the paper's model, step by step, as text or as a page.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/shipped_files.h"
#include "apps/program/terminal.h"
#include "apps/show/trace/model_pass.h"

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

namespace {

using nlohmann::json;

json shape_json(const Tensor& x) { return std::vector<i64>(x.shape().begin(), x.shape().end()); }

json numbers_json(const Tensor& x) {
  json result = json::array();
  for (i64 i = 0; i < x.count(); ++i) result.push_back(shown(x.at(i)));
  return result;
}

json source_json(const SourceLine& source) {
  return {{"path", source.path}, {"line", source.line}, {"code", source.code}};
}

json value_json(const TracedValue& value, bool with_numbers) {
  json result{{"name", value.name}, {"shape", shape_json(value.value)}};
  if (!value.parameter.empty()) result["parameter"] = value.parameter;
  if (!value.steps.empty()) result["steps"] = value.steps;
  if (with_numbers) result["values"] = numbers_json(value.value);
  if (!value.masked.empty()) result["masked"] = value.masked;
  if (!value.words.empty()) result["words"] = value.words;
  return result;
}

// Values that another step computed, and weights, stand in the page once.
json step_json(const TracedStep& step) {
  json inputs = json::array(), outputs = json::array(), inside = json::array();
  for (const TracedValue& value : step.inputs) {
    const bool stands_elsewhere = !step.is_backward() && (!value.parameter.empty() || !value.steps.empty());
    json input = value_json(value, !stands_elsewhere);
    if (stands_elsewhere && value.parameter.empty()) input["output"] = value.output;
    inputs.push_back(std::move(input));
  }
  for (const TracedValue& value : step.outputs) outputs.push_back(value_json(value, true));
  for (const TracedValue& value : step.inside) inside.push_back(value_json(value, true));
  return {{"number", step.number},
          {"forward", step.forward},
          {"operation", step.operation},
          {"box", step.box},
          {"equation", step.equation},
          {"source", source_json(operation_source(step.operation, step.is_backward() ? "backward" : "forward"))},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"inside", std::move(inside)}};
}

}  // namespace

std::string trace_json(const ModelPass& pass) {
  json boxes = json::array(), steps = json::array(), parameters = json::array();
  for (const TracedBox& box : pass.boxes)
    boxes.push_back({{"id", box.id}, {"title", box.title}, {"source", source_json(box.source)}});
  for (const TracedStep& step : pass.steps) steps.push_back(step_json(step));
  for (const TracedParameter& p : pass.parameters)
    parameters.push_back({{"name", p.name},
                          {"shape", shape_json(p.value)},
                          {"values", numbers_json(p.value)},
                          {"gradient", numbers_json(p.gradient)}});
  const json data{
      {"intro", introduction(pass)}, {"sizes", {{"S", pass.S}, {"T", pass.T}, {"K", pass.K}, {"h", pass.h}}},
      {"words", pass.words},         {"source", pass.source},
      {"target", pass.target},       {"labels", pass.labels},
      {"loss", shown(pass.loss)},    {"boxes", std::move(boxes)},
      {"steps", std::move(steps)},   {"parameters", std::move(parameters)}};
  return json_in_script(data.dump());
}

std::string trace_page(const ModelPass& pass) { return html_page("apps/show/trace", trace_json(pass)); }

namespace {

struct TraceOptions {
  std::string html;
};

int run(const TraceOptions& options) {
  check_can_write_text("trace", "--html", options.html);
  const ModelPass pass = traced_pass();
  if (options.html.empty()) {
    print_pass(std::cout, pass);
    std::cout << std::flush;
  } else {
    write_text(options.html, trace_page(pass));
  }
  return done;
}

}  // namespace

void add_trace(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App& command =
      add_command(program, "trace", "Show one forward and backward pass of the paper's model, step by step",
                  "Examples:\n  orrery trace | less\n  orrery trace --html trace.html");
  add_output_file(command, "--html", options->html,
                  "Write the pass to this file as a page for a browser; without it as text to stdout");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
