// Chapter 7. Every sample of a stack or a model is proven in every part.
#include "nn/check/sample_rows.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("slow: promise 6: promise 8: promise 10: every sample of a stack or a model is proven in every part") {
  samples::check_table(nn::model_samples());
}
