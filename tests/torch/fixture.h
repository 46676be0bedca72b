// Chapter 5. Comparing with PyTorch: reads the cases that tests/fixtures/make_fixtures.py wrote, and runs ours on them.
//
// It holds tensors named FIXTURE/CASE/ROLE.NAME: input, parameter, cotangent (dL/dy), output, gradient. Inputs are f32
// numbers, so that f64 and f32 start from the same; outputs and gradients are PyTorch's, in f64.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "nn/files/names.h"

namespace orrery::torch_parity {

/// The tensors whose names start with `prefix`, without it.
inline TensorMap without_prefix(const TensorMap& tensors, const std::string& prefix) {
  TensorMap result;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) result[name.substr(prefix.size())] = tensor;
  return result;
}

/// The tensors of all cases of a fixture, by CASE/ROLE.NAME.
inline TensorMap read_fixture(const std::string& name) {
  static const TensorFile all =
      read_safetensors(std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/pytorch.safetensors");
  return without_prefix(all.tensors, name + "/");
}

/// One case of a fixture: tensors by role and name.
struct Case {
  TensorMap tensors;

  Case(const std::string& fixture, const std::string& name)
      : tensors(without_prefix(read_fixture(fixture), name + "/")) {
    REQUIRE_MESSAGE(!tensors.empty(), fixture, " has no case ", name);
  }
  const Tensor& at(const std::string& name) const {
    const auto found = tensors.find(name);
    REQUIRE_MESSAGE(found != tensors.end(), "the case has no ", name);
    return found->second;
  }
  /// All tensors of a role by name: "parameter", "gradient".
  TensorMap role(const std::string& role) const { return without_prefix(tensors, role + "."); }
};

/// "" if every |a - b| <= 1e-12 + 1e-9 |b|, else the first element that is further off. Where `cotangent` is given and
/// 0, nobody looks at the element, and it is passed over.
inline std::string difference(const Tensor& a, const Tensor& b, const Tensor& cotangent = {}) {
  constexpr double atol = 1e-12, rtol = 1e-9;
  std::ostringstream text;
  text.precision(17);
  if (a.shape() != b.shape()) {
    text << "shape " << a.shape() << " instead of " << b.shape();
    return text.str();
  }
  for (i64 i = 0; i < a.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (cotangent.defined() && cotangent.at(i) == 0) continue;
    if (x == y || (std::isfinite(y) && std::abs(x - y) <= atol + rtol * std::abs(y))) continue;
    text << "element " << i << " is " << x << ", PyTorch's " << y;
    return text.str();
  }
  return "";
}

/// The largest |x|; infinite if a number is NaN.
inline double largest(const Tensor& x) {
  double result = 0;
  for (i64 i = 0; i < x.count(); ++i) {
    const double size = std::abs(x.at(i));
    if (!(size <= result)) result = std::isnan(size) ? INFINITY : size;
  }
  return result;
}

/// Gives the parameters of `module` the values of `tensors`, which must have exactly PyTorch's names and their shapes.
inline void set_parameters(nn::Module& module, const TensorMap& tensors) { nn::load(module, tensors, "fixture"); }

/// The inputs of a case: numbers are parameters, so that they get gradients; token ids, lengths and tables are tensors.
struct Inputs {
  std::map<std::string, Variable> numbers;
  TensorMap integers;

  const Variable& operator[](const std::string& name) const { return numbers.at(name); }
  const Tensor& ids(const std::string& name) const { return integers.at(name); }
};

/// What one forward and backward pass gives; gradients are 0 where backward reaches nothing.
struct Result {
  Tensor output;
  TensorMap gradients;
};

/// Runs y = f(inputs) with the case's parameters in `module`, everything in `dtype`, and backward from its cotangent.
template <class F> Result run(const Case& c, nn::Module& module, Dtype dtype, const F& f) {
  nn::to(module, dtype);
  set_parameters(module, c.role("parameter"));
  Inputs inputs;
  Parameters leaves = nn::parameters_on_disk(module);
  for (const auto& [name, tensor] : c.role("input")) {
    if (!is_floating(tensor.dtype())) {
      inputs.integers[name] = tensor;
    } else {
      leaves.push_back({name, inputs.numbers[name] = parameter(tensor.clone().to(dtype), name)});
    }
  }
  const Variable y = f(inputs);
  backward(y, c.at("cotangent").to(dtype));
  Result result{.output = y.value(), .gradients = {}};
  for (NamedParameter& leaf : leaves) {
    const Tensor& g = leaf.value.gradient();
    result.gradients[leaf.name] = g.defined() ? g.clone() : zeros(leaf.value.shape(), dtype);
    leaf.value.clear_gradient();
  }
  return result;
}

/// The output in f32 is within 1e-6 of the one in f64, relative to the largest number of that; so are the gradients,
/// relative to the largest number in any of them. Elements with cotangent 0 do not count.
inline void check_f32(const Case& c, const Result& single, const Result& exact) {
  const Tensor looked_at = c.at("cotangent").to(f64);
  CHECK(largest((single.output.to(f64) - exact.output) * looked_at) <= 1e-6 * largest(exact.output * looked_at));
  double limit = 0;
  for (const auto& [name, g] : exact.gradients) limit = std::max(limit, 1e-6 * largest(g));
  for (const auto& gradient : exact.gradients) {
    INFO("f32 gradient of ", gradient.first);
    CHECK(largest(single.gradients.at(gradient.first).to(f64) - gradient.second) <= limit);
  }
}

/// Output and every gradient of y = f(inputs) are PyTorch's in f64, and in f32 close to that.
template <class F> void check_equal(const Case& c, nn::Module& module, const F& f) {
  const Result exact = run(c, module, f64, f);
  CHECK(difference(exact.output, c.at("output"), c.at("cotangent")) == "");
  const TensorMap expected = c.role("gradient");
  CHECK(expected.size() == exact.gradients.size());
  for (const auto& gradient : exact.gradients) {
    INFO("gradient of ", gradient.first);
    REQUIRE(expected.contains(gradient.first));
    CHECK(difference(gradient.second, expected.at(gradient.first)) == "");
  }
  check_f32(c, run(c, module, f32, f), exact);
}

/// Stands for the module of a function that has no parameters of its own.
struct NoParameters : nn::Module {
  void visit(nn::Visitor&) override {}
};
/// The same for such a function.
template <class F> void check_equal(const Case& c, const F& f) {
  NoParameters none;
  check_equal(c, none, f);
}

}  // namespace orrery::torch_parity
