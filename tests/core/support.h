// Chapter 1. What the tests of tensors and of the tape share: errors as text, tensors as lists, random tensors,
// runs with threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/check/scheduling.h"
#include "core/machine/memory.h"
#include "core/tensor_ops.h"

namespace orrery::small {

/// What an action throws, "" if nothing.
template <class Action> std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) { return error.what(); }
  return "";
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// How often a text has a part.
inline size_t times(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A text that consists of `text` so many times.
inline std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

/// The elements of a tensor in row order, to compare with a list.
inline std::vector<double> elements(const Tensor& x) { return x.to_vector(); }

/// The vector of these elements.
inline Tensor vector_of(const std::vector<double>& elements) {
  return Tensor::of({static_cast<i64>(elements.size())}, elements);
}

/// Normal numbers, for one seed always the same.
inline Tensor normal(const Shape& shape, u64 seed = 5, Dtype dtype = f64) {
  Rng rng(seed);
  return randn(shape, rng, dtype);
}

/// The larger of two errors; infinity for NaN, which a running maximum would lose.
inline double worse(double worst, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
}

inline bool all_finite(const Tensor& x) {
  for (i64 i = 0; i < x.count(); ++i)
    if (!std::isfinite(x.at(i))) return false;
  return true;
}

/// Whether this build counts memory. Under a sanitizer every block comes from the system, and nothing is counted.
inline bool counts_memory() {
  const i64 before = memory_counters().allocations;
  deallocate(allocate(1));
  return memory_counters().allocations > before;
}

/// What `<<` writes.
template <class T> std::string text_of(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Sets the number of threads for as long as it lives.
class Threads {
 public:
  explicit Threads(int wanted) : before_(threads()) { set_threads(wanted); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
  ExactThreads exact_;
};

/// True when `compute` returns a tensor of the same bits with 1, 2, 3, 4 and 8 threads.
template <class Compute> bool same_for_any_threads(const Compute& compute) {
  Tensor first;
  for (const int count : {1, 2, 3, 4, 8}) {
    const Threads scope(count);
    const Tensor y = compute();
    if (!first.defined()) first = y;
    if (!same_bits(first, y)) return false;
  }
  return true;
}

}  // namespace orrery::small
