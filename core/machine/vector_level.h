// Chapter 8. Levels of vector instructions: of the CPU, and of this build.
#pragma once

#include <string_view>

namespace orrery {

/// Vector instructions, from narrow to wide. The first is all that is known of a CPU that is not an x86.
enum class VectorLevel { baseline, avx, avx2, avx512 };
/// "AVX-512"
std::string_view name_of(VectorLevel level);
/// The highest level that this CPU has.
VectorLevel cpu_vector_level();
/// The level that this library was compiled for.
VectorLevel compiled_vector_level();

}  // namespace orrery
