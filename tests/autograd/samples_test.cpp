// Chapter 6. Every operation's row in the table of proofs, and a row for every operation.
#include "autograd/samples.h"

#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("every sample of an operation passes the gradient check") {
  samples::check_table(operation_samples(), samples::check_gradients);
}

TEST_CASE("operations in f32 have the gradients of f64 within 1e-6 of the largest") {
  samples::check_table(operation_samples(), samples::check_f32);
}

TEST_CASE("operations: zero in, zero out; two fresh passes give the same bits") {
  samples::check_table(operation_samples(), samples::check_passes);
}

TEST_CASE("every function in autograd/ops.h has a sample, and every sample a function") {
  std::set<std::string> functions;
  samples::find_names(ORRERY_SOURCE_DIR "/autograd/ops.h",
                      R"(^(?:Variable|AttentionResult|std::array<\w+, \d>) (\w+)\()", functions);
  CHECK(functions.size() > 30);
  CHECK(functions == samples::names_of(operation_samples()));
}
