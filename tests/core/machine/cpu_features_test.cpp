// Chapter 8. Tests of the list of CPU features: this build's own, on the CPU that runs it.
#include "core/machine/cpu_features.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

using namespace orrery;

namespace {

std::span<const CpuFeature> features() { return {cpu_features, cpu_feature_count}; }

const CpuFeature& feature(std::string_view name) {
  const auto found = std::find_if(features().begin(), features().end(), [&](const auto& f) { return f.name == name; });
  REQUIRE(found != features().end());
  return *found;
}

}  // namespace

TEST_CASE("the CPU that runs this build has what it was built for") {
  char message[1024];
  CHECK(lacking_features(cpu_features, cpu_feature_count, cpu_answers(), message, sizeof message) == 0);
}

// These tests are compiled for the same CPU as the library.
TEST_CASE("the list knows what the compiler was told") {
#ifdef __SSE4_2__
  CHECK(feature("SSE4.2").needed);
#else
  CHECK_FALSE(feature("SSE4.2").needed);
#endif
#ifdef __AVX2__
  CHECK(feature("AVX2").needed);
#else
  CHECK_FALSE(feature("AVX2").needed);
#endif
#ifdef __AVX512F__
  CHECK(feature("AVX512F").needed);
#else
  CHECK_FALSE(feature("AVX512F").needed);
#endif
}

#if defined(__x86_64__)
TEST_CASE("CPUID is read as the compiler reads it") {
  const CpuAnswers cpu = cpu_answers();
  const auto has = [&](std::string_view name) {
    const CpuFeature& f = feature(name);
    return (cpu.words[f.word] >> f.bit & 1) != 0 && (cpu.saved_registers & f.registers) == f.registers;
  };
  CHECK(has("SSE3") == (__builtin_cpu_supports("sse3") != 0));
  CHECK(has("POPCNT") == (__builtin_cpu_supports("popcnt") != 0));
  CHECK(has("BMI2") == (__builtin_cpu_supports("bmi2") != 0));
  CHECK(has("AVX") == (__builtin_cpu_supports("avx") != 0));
  CHECK(has("FMA") == (__builtin_cpu_supports("fma") != 0));
  CHECK(has("AVX2") == (__builtin_cpu_supports("avx2") != 0));
  CHECK(has("AVX512F") == (__builtin_cpu_supports("avx512f") != 0));
  CHECK(has("AVX512VL") == (__builtin_cpu_supports("avx512vl") != 0));
  CHECK(has("AVX512VBMI") == (__builtin_cpu_supports("avx512vbmi") != 0));
}
#endif

TEST_CASE("no feature stands in the list twice, by name or by place") {
  std::set<std::string_view> names;
  std::set<std::pair<int, unsigned>> places;
  for (const CpuFeature& f : features()) {
    CAPTURE(f.name);
    CHECK(names.insert(f.name).second);
    CHECK(places.insert({f.word, f.bit}).second);
    CHECK(f.bit < 32);
  }
}
