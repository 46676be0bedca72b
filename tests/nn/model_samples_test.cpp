// Chapter 7. Every sample of a stack or a model passes the gradient check.
#include <doctest/doctest.h>

#include "nn/sample_rows.h"

using namespace orrery;

TEST_CASE("slow: stacks and models: sampled coordinates and random directions") {
  for (const Sample& sample : nn::model_samples()) {
    CAPTURE(sample.name);
    CAPTURE(sample.variant);
    const GradcheckReport report = gradcheck(sample.build(f64), sample.options);
    CHECK_MESSAGE(report.ok, report.message);
  }
}
