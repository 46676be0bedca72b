// Chapter 8. Vectors: numbers that one instruction adds or multiplies together.
//
// The compiler turns most loops into such instructions by itself. Where it matters which sums stay in registers
// (core/thin_product.cpp, core/small_product.cpp), they are written out, with the vectors of GCC and Clang: a + b and
// a * b are done for every lane.
// Read next: core/thin_product.h
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace orrery {

/// Bytes of a vector, and registers for them: 32 of 64 bytes with AVX-512, 16 of 32 elsewhere, or as good as that.
#if defined(__AVX512F__)
inline constexpr size_t vector_bytes = 64;
inline constexpr i64 vector_registers = 32;
#else
inline constexpr size_t vector_bytes = 32;
inline constexpr i64 vector_registers = 16;
#endif

/// `count` numbers that arithmetic treats as one: as many as a register holds, if not told otherwise.
template <class T, size_t count = vector_bytes / sizeof(T)>
struct VectorOf {
  static constexpr i64 lanes = static_cast<i64>(count);
  typedef T type __attribute__((vector_size(count * sizeof(T))));
};

/// Makes the compiler load `v` once, and not from memory again for every use. Changes no number.
template <class Vector>
inline void keep_in_register([[maybe_unused]] Vector& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__AVX__)
  asm("" : "+x"(v));
#endif
}

}  // namespace orrery
