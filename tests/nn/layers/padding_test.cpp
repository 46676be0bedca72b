// Chapter 6. Padding with huge numbers becomes 0; other padding is passed on as it is.
#include "nn/layers/padding.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "tests/nn/compare.h"

using namespace orrery;

TEST_CASE("NaN, infinity and huge numbers beyond the lengths become 0, numbers before them stay") {
  Rng rng(1);
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 1}));
  const Tensor clean = randn({2, 3, 4}, rng, f64);
  CHECK(nn::with_harmless_padding(constant(clean), mask).value().shares_memory_with(clean));
  CHECK(nn::with_harmless_padding(constant(clean), Mask()).value().shares_memory_with(clean));
  for (const double harmful : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e147}) {
    Tensor x = clean.clone();
    x(1, 2, 3) = harmful;
    const Tensor result = nn::with_harmless_padding(constant(x), mask).value();
    CHECK(same_bits(result.rows(0, 1), clean.rows(0, 1)));
    CHECK(same_bits(slice(result.rows(1, 2), 1, 0, 1), slice(clean.rows(1, 2), 1, 0, 1)));
    CHECK(sum_of_squares(slice(result.rows(1, 2), 1, 1)) == 0);
  }
}
