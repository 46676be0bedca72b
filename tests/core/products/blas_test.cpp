// Chapter 8. Tests of products by BLAS: their tiles, the guard's rule, and bits that OpenMP's regions do not change.
#include "core/products/blas.h"

#include <doctest/doctest.h>
#include <omp.h>

#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

TEST_CASE(
    "the least number of tiles is for all products that are cut at all, and shortens the tiles of the larger ones") {
  const products::LeastTiles scope(4);
  CHECK(least_tiles() == 4);
  CHECK(blas_tiles(64, 64, 64) == 4);
  CHECK(blas_tiles(63, 64, 64) == 1);
  CHECK(blas_tiles(48, 100, 100) == 4);
  CHECK(blas_tiles(32, 32, 1000) == 2);  // of 16 rows
  CHECK(blas_tiles(80, 64, 64) == 3);    // of 32, 32 and 16 rows
  CHECK(blas_tiles(512, 2048, 512) == 16);
  CHECK(error_of([] { set_least_tiles(0); }) == "gemm: the least number of tiles must be from 1 to 64, got 0");
  CHECK(error_of([] { set_least_tiles(65); }) == "gemm: the least number of tiles must be from 1 to 64, got 65");
  CHECK(least_tiles() == 4);
}

TEST_CASE("the rule for an OpenBLAS build and a number of threads") {
  CHECK(blas_action(0, 1) == BlasAction::nothing);  // built without threads: safe with one
  CHECK(blas_action(0, 2) == BlasAction::refuse);
  CHECK(blas_action(0, 64) == BlasAction::refuse);
  CHECK(blas_action(1, 1) == BlasAction::single_thread);  // pthreads
  CHECK(blas_action(1, 8) == BlasAction::single_thread);
  CHECK(blas_action(2, 1) == BlasAction::nothing);  // OpenMP: must never be told
  CHECK(blas_action(2, 8) == BlasAction::nothing);
}

TEST_CASE("the linked OpenBLAS is safe and says what it is") {
  CHECK_NOTHROW(guard_blas());
  const Threads scope(4);
  CHECK_NOTHROW(guard_blas());
  CHECK(threads() == 4);
  const BlasInfo info = blas_info();
  CHECK(info.config.find("OpenBLAS") != std::string::npos);
  CHECK_FALSE(info.kernel.empty());
  CHECK((info.threading == "OpenMP" || info.threading == "pthreads"));
}

TEST_CASE("an OpenBLAS whose kernels have narrower vectors than the library is not used, an unknown kernel is") {
  const auto narrow = [](const std::string& kernel, VectorLevel level) {
    return has_narrow_vectors({.kernel = kernel, .config = "", .threading = ""}, level);
  };
  CHECK(narrow("Prescott", VectorLevel::avx2));
  CHECK(narrow("Sandybridge", VectorLevel::avx2));  // wide, but without multiply-adds
  CHECK(narrow("Haswell", VectorLevel::avx512));
  CHECK_FALSE(narrow("Haswell", VectorLevel::avx2));
  CHECK_FALSE(narrow("Zen", VectorLevel::avx2));
  CHECK_FALSE(narrow("SkylakeX", VectorLevel::avx512));
  CHECK_FALSE(narrow("Prescott", VectorLevel::baseline));
  CHECK_FALSE(narrow("NeoverseN1", VectorLevel::baseline));
  CHECK_FALSE(narrow("SomethingNewer", VectorLevel::avx512));
  CHECK(uses_blas() == !narrow(blas_info().kernel, compiled_vector_level()));
}

TEST_CASE("a product by OpenBLAS alone is the same product") {
  Rng rng(7);
  const Tensor a = randn({61, 45}, rng), b = randn({37, 61}, rng);
  Tensor c = full({45, 37}, 777.0);
  gemm_by_blas<float>({a.data<float>(), 61, 45}, {b.data<float>(), 37, 61}, {c.write<float>(), 45, 37}, Trans::both);
  CHECK(sum_of_squares(c - matmul(a, b, Trans::both)) <= 1e-6);
}

TEST_CASE("a product has the same bits where OpenMP gives a region a single thread, and in a region of the caller's") {
  const Threads scope(2);
  Rng rng(8);
  // Products of BLAS in one tile and in several, and a batch: with two threads OpenBLAS would share each by itself.
  const Tensor a = randn({600, 700}, rng), b = randn({700, 300}, rng);
  const auto product = [&] {
    std::vector<Tensor> all{Tensor::empty({600, 300}), matmul(b, a, Trans::both), matmul(slice(a, 0, 0, 40), b)};
    gemm_batch<float>(2, {{a.data<float>(), 300, 700}, 300 * 700}, {{b.data<float>(), 700, 300}, 0},
                      {{all[0].write<float>(), 300, 300}, 300 * 300});
    return all;
  };
  const std::vector<Tensor> usual = product();
  const auto check_same = [&] {
    const std::vector<Tensor> here = product();
    for (size_t i = 0; i < usual.size(); ++i) CHECK(same_bits(here[i], usual[i]));
    Tensor c = Tensor::empty({600, 300});
    gemm_by_blas<float>({a.data<float>(), 600, 700}, {b.data<float>(), 700, 300}, {c.write<float>(), 600, 300});
    CHECK(sum_of_squares(c - matmul(a, b)) <= 1e-4);
  };
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);
  CHECK(threads() == 1);
  check_same();
  omp_set_max_active_levels(levels);
  CHECK(threads() == 2);
  parallel_tasks(2, [&](i64 i) {
    if (i == 0) check_same();
  });
}
