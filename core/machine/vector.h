// Chapter 8. Vectors: numbers that one instruction adds or multiplies together.
//
// The compiler turns most loops into such instructions by itself. Where it matters which sums stay in registers
// (core/products/thin_product.cpp, core/products/small_product.cpp, core/kernels/reduce.h), they are written out, with
// the vectors of GCC and Clang: a + b and a * b are done for every lane.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace orrery::kernels {

/// Bytes of a vector, and registers for vectors.
#if defined(__AVX512F__)
inline constexpr size_t vector_bytes = 64;
inline constexpr i64 vector_registers = 32;
#elif defined(__AVX__)
inline constexpr size_t vector_bytes = 32;
inline constexpr i64 vector_registers = 16;
#else
inline constexpr size_t vector_bytes = 16;
#if defined(__aarch64__)
inline constexpr i64 vector_registers = 32;
#else
inline constexpr i64 vector_registers = 16;
#endif
#endif

/// `count` numbers that arithmetic treats as one: as many as a register holds, if not told otherwise.
template <class T, size_t count = vector_bytes / sizeof(T)> struct VectorOf {
  static constexpr i64 lanes = static_cast<i64>(count);
  typedef T type __attribute__((vector_size(count * sizeof(T))));
};

/// The vector of the numbers that begin at `from`, at any address. Not std::memcpy: GCC, where it prefers vectors of
/// half a register (Intel), copies two halves, and then keeps vectors in memory that belong into registers.
template <class Vector, class T> static Vector load(const T* from) {
  typedef Vector Anywhere __attribute__((aligned(alignof(T)), may_alias));
  return *reinterpret_cast<const Anywhere*>(from);
}
/// Writes `v` to the numbers that begin at `to`, at any address.
template <class Vector, class T> static void store(const Vector& v, T* to) {
  typedef Vector Anywhere __attribute__((aligned(alignof(T)), may_alias));
  *reinterpret_cast<Anywhere*>(to) = v;
}

/// Makes the compiler load `v` once, and not from memory again for every use. Changes no number.
template <class Vector> static void keep_in_register([[maybe_unused]] Vector& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
}

}  // namespace orrery::kernels
