// Chapter 9. Tests of the peak: every loop that this CPU can run does so, and ends.
#include "apps/measure/doctor/peak.h"

#include <doctest/doctest.h>

using namespace orrery;

TEST_CASE("the peak can be measured with the vectors of every level that the CPU has") {
  for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > cpu_vector_level()) continue;
    CAPTURE(name_of(level));
    for (const int cores : {1, 2}) CHECK(peak_speed(level, cores, 0.001) > 0);
  }
}

TEST_CASE("the loops leave the numbers of their caller alone") {
  double before = 0.1, sum = 0;
  for (int i = 0; i < 10; ++i) {
    before *= 1.5;
    peak_speed(cpu_vector_level(), 1, 0.0001);
    sum += before;
  }
  double again = 0.1, expected = 0;
  for (int i = 0; i < 10; ++i) expected += again *= 1.5;
  CHECK(sum == expected);
}
