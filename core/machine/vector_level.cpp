// Chapter 8. Which level the CPU has, and which the compiler was told.
#include "core/machine/vector_level.h"

#include <algorithm>

#include "core/machine/cpu_features.h"

namespace orrery {
namespace {

// Whether the library was compiled for a feature (core/machine/cpu_features.cpp).
bool compiled_for(std::string_view feature) {
  return std::any_of(cpu_features, cpu_features + cpu_feature_count,
                     [&](const CpuFeature& known) { return known.needed && known.name == feature; });
}

}  // namespace

std::string_view name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512: return "AVX-512";
    case VectorLevel::avx2: return "AVX2";
    case VectorLevel::avx: return "AVX";
    case VectorLevel::baseline: return "128-bit vectors";
  }
  return "?";
}

VectorLevel cpu_vector_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return VectorLevel::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return VectorLevel::avx2;
  if (__builtin_cpu_supports("avx")) return VectorLevel::avx;
#endif
  return VectorLevel::baseline;
}

VectorLevel compiled_vector_level() {
  if (compiled_for("AVX512F") && compiled_for("AVX512VL") && compiled_for("AVX512BW") && compiled_for("AVX512DQ"))
    return VectorLevel::avx512;
  if (compiled_for("AVX2") && compiled_for("FMA")) return VectorLevel::avx2;
  return compiled_for("AVX") ? VectorLevel::avx : VectorLevel::baseline;
}

}  // namespace orrery
