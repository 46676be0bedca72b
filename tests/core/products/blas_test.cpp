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

TEST_CASE("an OpenBLAS is known to have narrower vectors than a level, or not to be known") {
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
  const products::UseBlas by_blas;
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
