// Chapter 8. The transpose of matrices whose sizes no block divides, and of a part of a larger matrix.
#include "core/products/transpose.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"

using namespace orrery;
using namespace orrery::kernels;

TEST_CASE("a transpose has every number where it belongs") {
  for (const Shape& shape : {Shape{0, 3}, {3, 0}, {1, 1}, {1, 40}, {40, 1}, {16, 16}, {37, 53}}) {
    CAPTURE(shape);
    const i64 rows = shape[0], cols = shape[1];
    const Tensor x = arange(rows * cols).to(f32).reshape({rows, cols});
    Tensor y = full({cols, rows}, -1.0);
    transpose(Mat<const float>(x.data<float>(), rows, cols), y.write<float>());
    i64 wrong = 0;
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < cols; ++j) wrong += y.at(j * rows + i) != x.at(i * cols + j);
    CHECK(wrong == 0);
    CHECK(same_bits(permute(x, {1, 0}), y));
  }
}

TEST_CASE("a part of a matrix is transposed without its neighbours") {
  const Tensor x = arange(6 * 8).to(f64).reshape({6, 8});
  Tensor y = full({3, 4}, -1.0, f64);
  transpose(Mat<const double>(x.data<double>() + 9, 4, 3, 8), y.write<double>());
  for (i64 i = 0; i < 4; ++i)
    for (i64 j = 0; j < 3; ++j) CHECK(y.at(j * 4 + i) == x.at(9 + i * 8 + j));
}
