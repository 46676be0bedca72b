// Chapter 6. What every sample of the table of proofs must pass, operations and layers alike.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <set>

#include "autograd/gradcheck.h"
#include "core/tensor_ops.h"

namespace orrery::samples {

/// dL/d(leaf) for each leaf of f, given dL/dy; zeros where backward does not reach one.
inline std::vector<Tensor> gradients(Checkable& f, const Tensor& dy) {
  const Variable y = f.output();
  if (y.wants_gradient()) backward(y, dy);
  std::vector<Tensor> result;
  for (NamedParameter& leaf : f.leaves) {
    const Tensor& g = leaf.value.gradient();
    result.push_back(g.defined() ? g : zeros(leaf.value.shape(), leaf.value.dtype()));
    leaf.value.clear_gradient();
  }
  return result;
}

inline double largest(const Tensor& x) {
  double result = 0;
  for (i64 i = 0; i < x.count(); ++i) {
    if (!(std::fabs(x.at(i)) <= result)) result = std::fabs(x.at(i));
  }
  return result;
}

inline double largest(const std::vector<Tensor>& tensors) {
  double result = 0;
  for (const Tensor& x : tensors) result = std::max(result, largest(x));
  return result;
}

/// A random dL/dy that f32 and f64 hold alike.
inline Tensor cotangent(const Shape& shape) {
  Rng rng(23);
  return randn(shape, rng);
}

/// f32 gradients lie within 1e-6 of max |g| of the f64 ones, computed from the same numbers.
inline void check_f32(const Sample& sample) {
  Checkable single = sample.build(f32), exact = sample.build(f64);
  REQUIRE(single.leaves.size() == exact.leaves.size());
  for (size_t i = 0; i < single.leaves.size(); ++i) {
    copy_into(exact.leaves[i].value.mutable_value(), single.leaves[i].value.value().to(f64));
  }
  const Tensor u = cotangent(exact.output().shape());
  const std::vector<Tensor> g = gradients(exact, u.to(f64)), h = gradients(single, u);
  const double limit = 1e-6 * largest(g);
  for (size_t i = 0; i < g.size(); ++i) {
    CAPTURE(exact.leaves[i].name);
    CHECK(h[i].dtype() == f32);
    CHECK(largest(h[i].to(f64) - g[i]) <= limit);
  }
}

/// dL/dy = 0 gives dL/dx = 0 exactly, and two fresh passes give the same bits.
inline void check_passes(const Sample& sample) {
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = sample.build(dtype);
    const Shape shape = f.output().shape();
    CHECK(largest(gradients(f, zeros(shape, dtype))) == 0.0);
    const Tensor u = cotangent(shape).to(dtype);
    const std::vector<Tensor> first = gradients(f, u), second = gradients(f, u);
    for (size_t i = 0; i < first.size(); ++i) CHECK(same_bits(first[i], second[i]));
  }
}

/// The first group of every match of `pattern` in the lines of a file.
inline void find_names(const std::string& path, const std::string& pattern, std::set<std::string>& names) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  const std::regex regex(pattern);
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_search(line, match, regex)) names.insert(match[1]);
  }
}

inline std::set<std::string> names_of(const std::vector<Sample>& table) {
  std::set<std::string> names;
  for (const Sample& sample : table) names.insert(sample.name);
  return names;
}

/// Every row of a table, each under its name.
inline void check_table(const std::vector<Sample>& table, void (*check)(const Sample&)) {
  for (const Sample& sample : table) {
    INFO(sample.name, ", ", sample.variant);
    check(sample);
  }
}

inline void check_gradients(const Sample& sample) { CHECK(gradcheck(sample.build(f64), sample.options)); }

}  // namespace orrery::samples
