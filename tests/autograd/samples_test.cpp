// Chapter 6. Every operation's row in the table of proofs, and a row for every operation.
#include "autograd/samples.h"

#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("promise 6: promise 8: promise 10: every sample of an operation is proven in every part") {
  samples::check_table(operation_samples());
}

TEST_CASE("promise 6: every function in autograd/ops.h has a sample, and every sample a function") {
  std::set<std::string> functions;
  samples::find_names(ORRERY_SOURCE_DIR "/autograd/ops.h",
                      R"(^(?:Variable|AttentionResult|std::array<\w+, \d>) (\w+)\()", functions);
  CHECK(functions.size() > 30);
  CHECK(functions == samples::names_of(operation_samples()));
}
