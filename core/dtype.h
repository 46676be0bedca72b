// Chapter 1. What an element of a tensor is: a run-time tag, and the step from the tag to a C++ type.
//
// Layers are compiled once; the tag decides at run time whether they compute in f32 (training) or f64 (gradient
// checks). Templates appear only inside kernels, behind `dispatch_floating`.
// Serves: core/tensor.h
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace orrery {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// f32 and f64 carry values and gradients, i32 carries token ids and lengths.
enum class Dtype : u8 { f32, f64, i32 };
inline constexpr Dtype f32 = Dtype::f32, f64 = Dtype::f64;

constexpr std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::f64: return "f64";
    case Dtype::i32: return "i32";
  }
  return "?";
}

constexpr i64 bytes_of(Dtype dtype) { return dtype == Dtype::f64 ? 8 : 4; }
constexpr bool is_floating(Dtype dtype) { return dtype != Dtype::i32; }

inline std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name_of(dtype); }

/// The tag of a C++ element type.
template <class T>
requires std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, i32>
inline constexpr Dtype dtype_of = std::is_same_v<T, float> ? f32 : std::is_same_v<T, double> ? f64 : Dtype::i32;

/// Calls `kernel(T{})` with T = float or double; any other dtype is an error of `operation`.
template <class Kernel>
decltype(auto) dispatch_floating(Dtype dtype, std::string_view operation, Kernel&& kernel) {
  switch (dtype) {
    case Dtype::f32: return kernel(float{});
    case Dtype::f64: return kernel(double{});
    default: fail(operation, "needs f32 or f64, got ", dtype);
  }
}

/// Calls `kernel(T{})` for every dtype.
template <class Kernel>
decltype(auto) dispatch(Dtype dtype, Kernel&& kernel) {
  switch (dtype) {
    case Dtype::f32: return kernel(float{});
    case Dtype::f64: return kernel(double{});
    default: return kernel(std::int32_t{});
  }
}

}  // namespace orrery
