// Chapter 9. Tests of what a run says of the machine.
#include "apps/machine.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/blas.h"

using namespace orrery;

TEST_CASE("a kernel held below the CPU's level is worth a warning, whatever its spelling") {
  const auto warning = kernel_warning("Haswell", "Haswell", VectorLevel::avx512);
  REQUIRE(warning);
  CHECK(*warning ==
        "warning: OPENBLAS_CORETYPE=Haswell holds matrix products to AVX2; this CPU can do AVX-512 (unset it to be "
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

TEST_CASE("a passive wait policy is worth a warning") {
  CHECK(wait_policy_warning("PASSIVE"));
  CHECK_FALSE(wait_policy_warning("active"));
  CHECK_FALSE(wait_policy_warning(nullptr));
}

TEST_CASE("the first lines name seed, kernel, model and time") {
  std::ostringstream out;
  print_start(out, {.seed = 42, .parameters = 128013, .expected_seconds = 75});
  CHECK(out.str().starts_with("seed 42, "));
  CHECK(out.str().find("kernel " + blas_info().kernel + "\n") != std::string::npos);
  CHECK(out.str().find("model of 128013 parameters\n") != std::string::npos);
  CHECK(out.str().find("expected time 1 min 15 s\n") != std::string::npos);
}
