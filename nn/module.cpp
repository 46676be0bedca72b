// Chapter 5. Module: the visitors behind names, counts, conversion and printing.
//
// Each of these tasks is one small Visitor. They differ only in what they do with a parameter.
#include "nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/tensor_ops.h"
#include "nn/part.h"

namespace orrery::nn {

std::string Visitor::path_of(std::string_view name) const { return prefix_ + std::string(name); }

namespace {

// Whether there is a parameter to visit. Constants have no identity, so two of them would count as one.
bool is_parameter(const Variable& parameter, const std::string& path) {
  check(!parameter.defined() || parameter.is_leaf(), "visit", path,
        " is no parameter; nn::freeze keeps a parameter from learning, and a Tensor can be visited as a buffer");
  return parameter.defined();
}

}  // namespace

void Visitor::operator()(std::string_view name, Variable& parameter) {
  if (is_parameter(parameter, path_of(name))) on_parameter(path_of(name), parameter);
}

void Visitor::operator()(std::string_view name, Tensor& buffer) {
  if (buffer.defined()) on_buffer(path_of(name), buffer);
}

void Visitor::derived(std::string_view name, Tensor& buffer) {
  if (buffer.defined()) on_derived(path_of(name), buffer);
}

// The module to visit for `child`: the one it holds, if it is a part; null if nothing is to be visited.
Module* Visitor::visited(Module& child) {
  auto* const part = dynamic_cast<Replaceable*>(&child);
  if (!part) return &child;
  return enters(*part) ? part->module() : nullptr;
}

void Visitor::walk(Module& module, const std::string& prefix) {
  const std::string outer = std::exchange(prefix_, prefix);
  module.visit(*this);
  prefix_ = outer;
}

void Visitor::operator()(std::string_view name, Module& child) {
  Module* const module = visited(child);
  if (!module) return;
  const std::string path = path_of(name);
  enter(path, *module);
  walk(*module, path + ".");
  leave();
}

void Visitor::inlined(Module& child) {
  if (Module* const module = visited(child)) module->visit(*this);
}
void Visitor::enter(const std::string&, Module&) {}

namespace {

// Every name with its parameter or buffer. A name given twice is an error, since a file can hold only one of the two.
class Collector : public Visitor {
 public:
  Parameters parameters;
  std::vector<Module::NamedBuffer> buffers;

 private:
  void on_parameter(const std::string& path, Variable& parameter) override {
    add_name(path);
    parameters.push_back({path, parameter});
  }
  void on_buffer(const std::string& path, Tensor& buffer) override {
    add_name(path);
    buffers.push_back({path, buffer});
  }
  void on_derived(const std::string& path, Tensor& buffer) override {
    on_buffer(path, buffer);
    buffers.back().derived = true;
  }
  void add_name(const std::string& path) {
    check(names_.insert(path).second, "visit", "the name \"", path, "\" is given twice");
  }
  std::set<std::string> names_;
};

Collector collect(Module& module) {
  Collector collector;
  module.visit(collector);
  return collector;
}

// A tied parameter is converted once, and all its places get the result, so that they stay tied.
class Converter : public Visitor {
 public:
  explicit Converter(Dtype dtype) : dtype_(dtype) {}

 private:
  void on_parameter(const std::string&, Variable& parameter) override {
    parameter.clear_gradient();
    if (parameter.dtype() == dtype_) return;
    const Variable before = parameter;
    const auto found = converted_.find(before.node());
    if (found != converted_.end()) {
      parameter = found->second;
      return;
    }
    parameter.replace_value(before.value().to(dtype_));
    converted_[before.node()] = parameter;
  }
  void on_buffer(const std::string&, Tensor& buffer) override {
    if (is_floating(buffer.dtype())) buffer = buffer.to(dtype_);
  }
  Dtype dtype_;
  std::map<std::shared_ptr<Node>, Variable> converted_;  // holds the old ones, so that no new one has their address
};

// Gives the parameters of a copy the ties that those of the original have, in the same order.
class Tying : public Visitor {
 public:
  explicit Tying(Parameters originals) : originals_(std::move(originals)) {}

 private:
  void on_parameter(const std::string& path, Variable& p) override {
    if (next_ == originals_.size()) return;  // copy_parameters reports it
    Variable& first = copies_[originals_[next_++].value.node().get()];
    if (first.defined()) {
      p = first;
      return;
    }
    if (!used_.insert(p.node().get()).second) p = parameter(p.value().clone(), path);  // tied in the copy alone
    first = p;
  }
  Parameters originals_;
  size_t next_ = 0;
  std::map<const Node*, Variable> copies_;  // by parameter of the original
  std::set<const Node*> used_;
};

// 1234567 -> "1,234,567"
std::string grouped(i64 count) {
  std::string digits = std::to_string(count);
  for (i64 i = static_cast<i64>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

class Printer : public Visitor {
 public:
  explicit Printer(std::ostream& out) : out_(out) {}

 private:
  void on_parameter(const std::string& path, Variable& parameter) override {
    indent(path) << ' ' << parameter.shape();
    const auto [first, is_new] = first_names_.emplace(parameter.node().get(), path);
    if (!is_new) out_ << " = " << first->second;
    out_ << (parameter.is_frozen() ? " frozen\n" : "\n");
  }
  void on_buffer(const std::string& path, Tensor& buffer) override {
    indent(path) << ' ' << buffer.shape() << " buffer\n";
  }
  void enter(const std::string& path, Module& child) override {
    const i64 count = child.parameter_count();
    shown_.push_back(count > 0);
    if (!shown_.back()) return;
    indent(path) << ": " << type_name(child) << ", " << grouped(count) << '\n';
    start_.push_back(path.size() + 1);
  }
  void leave() override {
    if (shown_.back()) start_.pop_back();
    shown_.pop_back();
  }
  // Prints the part of a path below its module, two spaces deeper than that module.
  std::ostream& indent(const std::string& path) {
    return out_ << std::string(2 * (start_.size() + 1), ' ') << path.substr(start_.empty() ? 0 : start_.back());
  }

  std::ostream& out_;
  std::vector<size_t> start_;  // where names begin within a path, one for each enclosing module
  std::vector<bool> shown_;
  std::map<const Node*, std::string> first_names_;
};

}  // namespace

std::string type_name(const Module& module) { return type_name(typeid(module)); }

std::string type_name(const std::type_info& type) {
  const char* mangled = type.name();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                             &std::free);
  const std::string name = status == 0 ? readable.get() : mangled;
  const size_t colons = name.rfind("::", name.find('<'));  // not those of a template's arguments
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

Parameters Module::parameters() {
  Parameters once;
  std::set<const Node*> seen;
  for (NamedParameter& parameter : collect(*this).parameters) {
    if (!seen.insert(parameter.value.node().get()).second) continue;
    if (parameter.value.name().empty()) parameter.value.set_name(parameter.name);
    once.push_back(std::move(parameter));
  }
  return once;
}

void Module::name_parameters() {
  for (NamedParameter& parameter : parameters()) parameter.value.set_name(parameter.name);
}

Parameters Module::named_parameters() { return collect(*this).parameters; }
std::vector<Module::NamedBuffer> Module::buffers() { return collect(*this).buffers; }

namespace {

// Of each parameter once.
i64 count_elements(Module& module, const std::function<bool(const Variable&)>& counts) {
  i64 count = 0;
  std::set<const Node*> seen;
  for (const auto& [name, parameter] : module.named_parameters()) {
    if (counts(parameter) && seen.insert(parameter.node().get()).second) count += parameter.value().count();
  }
  return count;
}

}  // namespace

i64 Module::parameter_count() {
  return count_elements(*this, [](const Variable&) { return true; });
}

void to(Module& module, Dtype dtype) {
  check(is_floating(dtype), "to", "parameters are f32 or f64, not ", dtype);
  Converter converter(dtype);
  module.visit(converter);
}

namespace {

void set_frozen(Module& module, bool frozen) {
  for (NamedParameter& parameter : module.parameters()) parameter.value.set_frozen(frozen);
}

}  // namespace

void freeze(Module& module) { set_frozen(module, true); }
void unfreeze(Module& module) { set_frozen(module, false); }

void freeze_like(Module& original, Module& copy) {
  const Parameters originals = original.named_parameters();
  Parameters copies = copy.named_parameters();
  check(originals.size() == copies.size(), "freeze_like", "the modules have ", originals.size(), " and ", copies.size(),
        " parameters");
  for (size_t i = 0; i < copies.size(); ++i)
    check(originals[i].name == copies[i].name, "freeze_like", originals[i].name, " does not fit ", copies[i].name);
  for (size_t i = 0; i < copies.size(); ++i) copies[i].value.set_frozen(originals[i].value.is_frozen());
}

void tie_like(Module& original, Module& copy) {
  Tying tying(original.named_parameters());
  copy.visit(tying);
}

void copy_parameters(Module& from, Module& into) {
  Collector source = collect(from), target = collect(into);
  const auto copy = [](const std::string& name, const Tensor& value, const std::string& place_name, Tensor& place) {
    check(name == place_name && value.shape() == place.shape(), "copy_parameters", name, ' ', value.shape(),
          " does not fit ", place_name, ' ', place.shape());
    copy_into(place, value.to(place.dtype()));
  };
  check(source.parameters.size() == target.parameters.size() && source.buffers.size() == target.buffers.size(),
        "copy_parameters", "the modules have ", source.parameters.size() + source.buffers.size(), " and ",
        target.parameters.size() + target.buffers.size(), " parameters and buffers");
  std::map<const Node*, const NamedParameter*> copied;  // by parameter of `into`: what it was copied from
  for (size_t i = 0; i < source.parameters.size(); ++i) {
    NamedParameter &x = source.parameters[i], &y = target.parameters[i];
    const NamedParameter& first = *copied.emplace(y.value.node().get(), &x).first->second;
    check(same_bits(first.value.value(), x.value.value()), "copy_parameters", first.name, " and ", x.name,
          " are one parameter in the copy, and differ");
    copy(x.name, x.value.value(), y.name, y.value.mutable_value());
  }
  for (size_t i = 0; i < source.buffers.size(); ++i) {
    copy(source.buffers[i].name, source.buffers[i].value, target.buffers[i].name, target.buffers[i].value);
  }
}

std::ostream& operator<<(std::ostream& out, Module& module) {
  const i64 frozen = count_elements(module, &Variable::is_frozen);
  out << type_name(module) << ", " << grouped(module.parameter_count()) << " parameters"
      << (frozen > 0 ? ", " + grouped(frozen) + " of them frozen" : "") << '\n';
  Printer printer(out);
  module.visit(printer);
  return out;
}

}  // namespace orrery::nn
