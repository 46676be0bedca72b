// Chapter 9. The page and its data.
#include "apps/show/trace/model_pass.h"

#include <nlohmann/json.hpp>

#include "apps/program/shipped_files.h"

namespace orrery {
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

}  // namespace orrery
