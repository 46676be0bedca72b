// Chapter 8. Tests of the product of linear maps: strides, biases, and work on each row once, in tiles or thin.
#include "autograd/ops/fused/linear/linear_rows.h"

#include "core/products/thin_product.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

TEST_CASE("rows of a linear map are finished once each, whether few or many, in a result with gaps") {
  constexpr i64 in = 5, out = 300, stride = 310;
  for (const i64 rows : {i64{1}, thin_rows, thin_rows + 1, i64{200}}) {
    CAPTURE(rows);
    const Tensor x = normal({rows, in}, 1), W = normal({out, in}, 2), b = normal({out}, 3);
    Tensor y = full({rows, stride}, 7.0, f64), finished = zeros({rows, out});
    float* times = finished.write<float>();
    linear_rows<double>({x.data<double>(), rows, in}, {W.data<double>(), out, in}, b.data<double>(),
                        {y.write<double>(), rows, out, stride}, [=](const Tile& tile, i64 row, double* to) {
                          for (i64 i = tile.column; i < tile.column_end; ++i) {
                            to[i] *= 2;
                            times[row * out + i] += 1;
                          }
                        });
    const Tensor expected = (matmul(x, W, Trans::b) + b) * 2.0;
    for (i64 row = 0; row < rows; ++row) {
      for (i64 i = 0; i < stride; ++i) {
        const double wanted = i < out ? expected.at(row * out + i) : 7.0;
        CHECK(std::fabs(y.at(row * stride + i) - wanted) <= 1e-12);
      }
    }
    CHECK(same_bits(finished, full({rows, out}, 1.0)));
  }
}

TEST_CASE("without a bias a linear map is its product, and the rows are those of all leading axes") {
  const Tensor x = normal({2, 20, 3}, 1), W = normal({4, 3}, 2), rows = as_rows(x);
  CHECK(rows.shape() == Shape{40, 3});
  for (const i64 count : {i64{1}, thin_rows, thin_rows + 1, i64{40}}) {
    CAPTURE(count);
    Tensor y = Tensor::empty({count, 4}, f64);
    linear_rows<double>({rows.data<double>(), count, 3}, {W.data<double>(), 4, 3}, nullptr,
                        {y.write<double>(), count, 4});
    CHECK(same_bits(y, matmul(rows.rows(0, count), W, Trans::b)));
  }
}
