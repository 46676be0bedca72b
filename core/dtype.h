// Chapter 1. Dtype: the element type of a tensor as a run-time tag, and the way from the tag to a C++ type.
//
// Layers are compiled once; the tag decides at run time whether they compute in f32 (training) or f64 (gradient
// checks). Templates appear only inside kernels, which `dispatch_floating` calls.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string_view>

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

/// The name of a dtype, the size of its elements, and whether they are floating.
struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  i64 bytes;
  bool floating;
};
/// One row for each dtype, in the order of the enumeration.
inline constexpr std::array<DtypeFacts, 3> dtype_table{
    {{Dtype::f32, "f32", 4, true}, {Dtype::f64, "f64", 8, true}, {Dtype::i32, "i32", 4, false}}};

/// The row of `dtype`. Error: there is none.
constexpr const DtypeFacts& facts_of(Dtype dtype) {
  for (const DtypeFacts& facts : dtype_table)
    if (facts.dtype == dtype) return facts;
  fail("dtype", "number ", static_cast<int>(dtype), " is not in the table of core/dtype.h");
}
constexpr std::string_view name_of(Dtype dtype) { return facts_of(dtype).name; }
constexpr i64 bytes_of(Dtype dtype) { return facts_of(dtype).bytes; }
constexpr bool is_floating(Dtype dtype) { return facts_of(dtype).floating; }

inline std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name_of(dtype); }

/// Whether `value` is a normal number of this floating dtype: there it is neither too large nor counts as 0.
inline bool is_normal(double value, Dtype dtype) {
  const auto within = [size = value < 0 ? -value : value](auto least, auto most) {
    return size >= least && size <= most;
  };
  return dtype == Dtype::f32 ? within(std::numeric_limits<float>::min(), std::numeric_limits<float>::max())
                             : within(std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
}

/// Error: no element of this dtype can have the whole part of `value`.
inline void check_fits(double value, Dtype dtype) {
  check(dtype != Dtype::i32 || (value > -0x1p31 - 1 && value < 0x1p31), "tensor", value, " does not fit into i32");
}

/// The tag of a C++ element type; other types have none.
template <class T> inline constexpr Dtype dtype_of = T::has_no_dtype;
template <> inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <> inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <> inline constexpr Dtype dtype_of<i32> = Dtype::i32;

/// Calls `kernel(T{})` with T = float or double. Any other dtype is an error that names `operation`.
template <class Kernel> decltype(auto) dispatch_floating(Dtype dtype, std::string_view operation, Kernel&& kernel) {
  switch (dtype) {
    case Dtype::f32: return kernel(float{});
    case Dtype::f64: return kernel(double{});
    case Dtype::i32: break;
  }
  fail(operation, "needs f32 or f64, got ", dtype);
}

/// Calls `kernel(T{})` with the C++ type of any dtype. A new dtype that is not handled here causes a compiler warning
/// and an error at run time.
template <class Kernel> decltype(auto) dispatch(Dtype dtype, Kernel&& kernel) {
  switch (dtype) {
    case Dtype::f32: return kernel(float{});
    case Dtype::f64: return kernel(double{});
    case Dtype::i32: return kernel(i32{});
  }
  fail("dispatch", "no kernel handles ", dtype);
}

}  // namespace orrery
