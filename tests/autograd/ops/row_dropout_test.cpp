// Chapter 8. Dropout inside other operations: the factors of a whole matrix, whichever part of it is at hand.
#include "autograd/ops/row_dropout.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {

constexpr Draw row_draw{.seed = 9, .step = 3, .micro = 1, .index = 2};
constexpr double drop_p = 0.3;

// Factor of element (row, column) of a matrix with n columns, by the layout in core/random.h.
template <class T>
T factor_at(i64 row, i64 column, i64 n) {
  const u64 block = static_cast<u64>(row * ((n + 7) / 8) + column / 8);
  return decisions(row_draw, block)[static_cast<size_t>(column % 8)] < keep_below(drop_p)
             ? static_cast<T>(keep_scale(drop_p))
             : T{0};
}

}  // namespace

TEST_CASE("rows are multiplied by the factors of their places, into other memory and in place") {
  const RowDropout dropout{drop_p, row_draw};
  const auto check = [&]<class T>(T) {
    for (const i64 n : {1, 7, 8, 13, 24, 128, 600, 1030}) {
      constexpr i64 begin = 3, end = 8;
      const i64 count = (end - begin) * n;
      std::vector<T> x(static_cast<size_t>(count)), y(x.size() + 1, T{-5});
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i + 1);
      dropout.rows(begin, end, n, x.data(), y.data());
      for (i64 i = 0; i < count; ++i)
        REQUIRE(y[static_cast<size_t>(i)] == x[static_cast<size_t>(i)] * factor_at<T>(begin + i / n, i % n, n));
      CHECK(y.back() == T{-5});
      dropout.rows(begin, end, n, x.data(), x.data());
      y.pop_back();
      CHECK(x == y);
    }
  };
  check(float{});
  check(double{});
}

TEST_CASE("some columns of a row are multiplied as in the whole row") {
  const RowDropout dropout{drop_p, row_draw};
  for (const i64 n : {13, 48, 1030}) {
    for (const i64 begin : {i64{0}, i64{8}, n / 16 * 8}) {
      for (const i64 end : {begin, std::min(n, begin + 5), n}) {
        std::vector<double> y(static_cast<size_t>(n), 2.0);
        dropout.columns(4, n, begin, end, y.data());
        for (i64 i = 0; i < n; ++i)
          REQUIRE(y[static_cast<size_t>(i)] == (i >= begin && i < end ? 2 * factor_at<double>(4, i, n) : 2));
      }
    }
  }
}

TEST_CASE("a whole tensor, also in place; p = 0 copies rows") {
  const Tensor x = full({2, 3, 13}, 2.0);
  const Tensor y = RowDropout{drop_p, row_draw}.applied(x, Tensor::empty(x.shape(), x.dtype()));
  for (i64 i = 0; i < x.count(); ++i) REQUIRE(y.at(i) == 2 * factor_at<float>(i / 13, i % 13, 13));
  Tensor own = full({2, 3, 13}, 2.0);
  CHECK(same_bits(RowDropout{drop_p, row_draw}.applied(own, own), y));
  CHECK(elements(RowDropout{1.0, row_draw}.applied(x, Tensor::empty(x.shape(), x.dtype()))) ==
        std::vector<double>(78, 0.0));
  const std::vector<float> from{1, 2, 3};
  std::vector<float> to(3);
  RowDropout{}.rows(0, 1, 3, from.data(), to.data());
  CHECK(to == from);
  CHECK(RowDropout{drop_p, row_draw}.applied(zeros({0, 3}), zeros({0, 3})).count() == 0);
  const Tensor scalar = RowDropout{drop_p, row_draw}.applied(full({}, 2.0), zeros({}));
  CHECK(scalar.item() == 2 * factor_at<float>(0, 0, 1));
}

TEST_CASE("a probability outside [0, 1] is refused in the operation's name") {
  for (const double wrong : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(error_of([&] {
            RowDropout{wrong, row_draw}.check_usable("residual");
          }).starts_with("residual: needs a probability in [0, 1], got "));
  }
  CHECK_NOTHROW((RowDropout{0.5, {.micro = 65535}}.check_usable("residual")));
  CHECK_THROWS_WITH_AS((RowDropout{0.5, {.micro = 65536}}.check_usable("residual")),
                       "residual: needs a micro-batch below 65536, got 65536", Error);
  CHECK_NOTHROW((RowDropout{1, row_draw}.check_usable("residual")));
}
