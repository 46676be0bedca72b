// Chapter 8. Vectors: every lane for itself, and none changed by staying in a register.
#include "core/machine/vector.h"

#include <doctest/doctest.h>

using namespace orrery;
using namespace orrery::kernels;

namespace {

template <class V>
void check_lanes() {
  using Vector = typename V::type;
  float memory[2 * V::lanes + 2];
  float *x = memory + 1, *y = x + V::lanes;  // at no vector's address
  for (i64 i = 0; i < V::lanes; ++i) x[i] = static_cast<float>(i) + 0.5F;
  Vector v = load<Vector>(x);
  if constexpr (sizeof(Vector) == vector_bytes) keep_in_register(v);
  v = v * v + v;
  store(v, y);
  for (i64 i = 0; i < V::lanes; ++i) CHECK(y[i] == x[i] * x[i] + x[i]);
}

}  // namespace

TEST_CASE("arithmetic on a vector is done for every lane") {
  CHECK(VectorOf<float>::lanes == 2 * VectorOf<double>::lanes);
  check_lanes<VectorOf<float>>();
  check_lanes<VectorOf<float, 4>>();
}
