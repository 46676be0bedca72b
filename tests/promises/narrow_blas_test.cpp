// Chapter 8. Promise 4: an OpenBLAS whose kernels have narrower vectors than the library computes no product.
#include "core/machine/vector_level.h"
#include "core/products/gemm.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/promises/rerun.h"

using namespace orrery;

namespace {

const std::string training = program::quoted_program + "toy --steps 20 --d-model 40 --batch 32 --hash ",
                  without_blas = "LD_PRELOAD='" ORRERY_NO_BLAS "' ";

}  // namespace

TEST_CASE("promise 4: no product of a training calls an OpenBLAS with too narrow vectors, and bits are equal") {
  if (!small::counts_memory()) return;  // AddressSanitizer wants to be loaded first
  // Where OpenBLAS is used, the training ends at its first product.
  CHECK((program::shell(without_blas + training + "2>&1").exit_code == 3) == kernels::uses_blas());
  if (compiled_vector_level() == VectorLevel::baseline) return;  // no kernel is narrower
  std::string expected;
  for (const std::string threads : {"1", "2", "4"}) {
    const program::Result result =
        promises::run(promises::narrow_kernel, without_blas + training + "--threads " + threads + " 2>&1");
    CAPTURE(result.text);
    CHECK(result.exit_code == 0);
    const std::string hash = program::hash_in(result.text);
    REQUIRE(hash != "");
    if (expected.empty()) expected = hash;
    CHECK(hash == expected);
  }
}

TEST_CASE("promise 4: with such an OpenBLAS products of all shapes have equal bits for any number of threads") {
  promises::check_rerun(promises::narrow_kernel, "bits of products do not depend on the threads");
}
