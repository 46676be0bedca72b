// Chapter 9. Tests of what a run says of the machine.
#include "apps/program/machine.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/products/blas.h"

using namespace orrery;

TEST_CASE("a kernel held below the CPU's level is worth a warning, whatever its spelling") {
  const auto warning = kernel_warning("Haswell", "Haswell", VectorLevel::avx512);
  REQUIRE(warning);
  CHECK(*warning ==
        "warning: OPENBLAS_CORETYPE=Haswell limits matrix products to AVX2; this CPU has AVX-512 (unset it to be "
        "faster)");
  CHECK(kernel_warning("sandybridge", "sandybridge", VectorLevel::avx2));
}

TEST_CASE("no warning where the variable changes nothing for the worse") {
  CHECK_FALSE(kernel_warning(nullptr, "Haswell", VectorLevel::avx512));
  CHECK_FALSE(kernel_warning("", "Haswell", VectorLevel::avx512));
  CHECK_FALSE(kernel_warning("Haswell", "Haswell", VectorLevel::avx2));
  CHECK_FALSE(kernel_warning("SkylakeX", "SkylakeX", VectorLevel::avx2));
  CHECK_FALSE(kernel_warning("NeoverseN1", "neoversen1", VectorLevel::baseline));
}

TEST_CASE("a busy machine is worth a warning, a quiet one is not") {
  const std::string before = "cpu  1000 20 300 5000 80 0 10 0 0 0\ncpu0 1 2 3\n";
  const std::string half = "cpu  1015 20 305 5018 82 0 10 0 0 0\n";  // 20 of 40 jiffies idle
  CHECK(busy_cores(before, half, 2) == doctest::Approx(1));
  CHECK(busy_cores(before, "cpu  1000 20 300 5040 80 0 10 0 0 0\n", 2) == 0);
  CHECK(busy_cores(before, before, 2) == 0);
  CHECK(busy_cores("", "", 2) == 0);
  CHECK(busy_warning(1, 2) == "warning: other programs keep 1.0 of 2 cores busy; measured times will be too long");
  CHECK_FALSE(busy_warning(0.2, 2));
}

TEST_CASE("a passive wait policy is worth a warning") {
  CHECK(wait_policy_warning("PASSIVE"));
  CHECK_FALSE(wait_policy_warning("active"));
  CHECK_FALSE(wait_policy_warning(nullptr));
}

TEST_CASE("what OpenBLAS reads from the environment is said in one line") {
  const char* const some[] = {"PATH=/bin", "OPENBLAS_L2_SIZE=512", "MY_OPENBLAS_X=1", "OPENBLAS_CORETYPE=Haswell",
                              nullptr};
  CHECK(blas_variables(some) == "set, and read by OpenBLAS: OPENBLAS_L2_SIZE=512, OPENBLAS_CORETYPE=Haswell");
  CHECK_FALSE(blas_variables(some + 4));
}

TEST_CASE("more threads than tiles are worth a warning") {
  CHECK_FALSE(tiles_warning(2, 2));
  CHECK_FALSE(tiles_warning(1, 2));
  CHECK(tiles_warning(8, 2) ==
        "warning: the deepest products are cut for 2 cores; --tiles 8 cuts them for 8 (and gives other bits, as "
        "another seed "
        "would)");
}

TEST_CASE("the CPU has a name") { CHECK_FALSE(cpu_name().empty()); }

TEST_CASE("the first lines name seed, tiles, kernel, model and time") {
  std::ostringstream out;
  print_start(out, {.seed = 42, .parameters = 128013, .expected_seconds = 75});
  CHECK(out.str().starts_with("seed 42, "));
  CHECK(out.str().find(", products in at least 2 tiles, OpenBLAS ") != std::string::npos);
  CHECK(out.str().find("kernel " + blas_info().kernel + "\n") != std::string::npos);
  CHECK(out.str().find("model of 128013 parameters\n") != std::string::npos);
  CHECK(out.str().find("expected time 1 min 15 s\n") != std::string::npos);
}
