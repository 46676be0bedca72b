// Chapter 8. Promise 4: whatever OpenBLAS is there, it computes no product, unless it is told to.
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/promises/rerun.h"

using namespace orrery;

namespace {

const std::string training = program::quoted_program + "toy --steps 20 --d-model 40 --batch 32 --hash ",
                  without_blas = "LD_PRELOAD='" ORRERY_NO_BLAS "' ";

}  // namespace

TEST_CASE("promise 4: no product of a training calls OpenBLAS, and bits are equal whatever kernels it has") {
  if (!small::counts_memory()) return;  // AddressSanitizer wants to be loaded first
  // Where OpenBLAS is used, the training ends at its first product.
  CHECK(program::shell(without_blas + training + "--products blas 2>&1").exit_code == 3);
  std::string expected;
  for (const auto& [kernel, threads] : {std::pair(promises::automatic_kernel, "1"),
                                        {promises::narrow_kernel, "1"},
                                        {promises::narrow_kernel, "2"},
                                        {promises::narrow_kernel, "4"}}) {
    const program::Result result = promises::run(kernel, without_blas + training + "--threads " + threads + " 2>&1");
    CAPTURE(result.text);
    CHECK(result.exit_code == 0);
    const std::string hash = program::hash_in(result.text);
    REQUIRE(hash != "");
    if (expected.empty()) expected = hash;
    CHECK(hash == expected);
  }
}

TEST_CASE("promise 4: with a slow OpenBLAS products of all shapes have equal bits for any number of threads") {
  promises::check_rerun(promises::narrow_kernel, "bits of products do not depend on the threads*");
}
