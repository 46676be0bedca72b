// Chapter 8. Vectors: every lane for itself, and none changed by staying in a register.
#include "core/machine/vector.h"

#include <doctest/doctest.h>

using namespace orrery;
using namespace orrery::kernels;

namespace {

template <class T, size_t count = vector_bytes / sizeof(T)>
void check_lanes() {
  using V = VectorOf<T, count>;
  using Vector = typename V::type;
  alignas(vector_bytes) T memory[2 * V::lanes + 2];
  T *x = memory + 1, *y = x + V::lanes;  // at no vector's address
  for (i64 i = 0; i < V::lanes; ++i) x[i] = static_cast<T>(i) + T{0.5};
  Vector v = load<Vector>(x);
  if constexpr (sizeof(Vector) == vector_bytes) keep_in_register(v);
  v = v * v + v;
  store(v, y);
  for (i64 i = 0; i < V::lanes; ++i) CHECK(y[i] == x[i] * x[i] + x[i]);
}

}  // namespace

TEST_CASE("arithmetic on a vector is done for every lane") {
  CHECK(VectorOf<float>::lanes == 2 * VectorOf<double>::lanes);
  check_lanes<float>();
  check_lanes<float, 4>();
  check_lanes<double>();
}
