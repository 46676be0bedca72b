// Chapter 5. The comparison with PyTorch is checked itself: what is wrong does not pass.
#include "tests/torch/fixture.h"

#include "autograd/ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

std::string difference_of(const std::vector<double>& a, const std::vector<double>& b, const Tensor& cotangent = {}) {
  return difference(small::vector_of(a), small::vector_of(b), cotangent);
}

}  // namespace

TEST_CASE("promise 9: a relative error of 1e-8, NaN and another shape are differences") {
  CHECK(difference_of({1, 2, 3}, {1, 2, 3}) == "");
  CHECK(difference_of({1, 2 + 1e-9, 1e-13}, {1, 2, 0}) == "");
  CHECK(difference_of({1, 2 + 2e-8, 3}, {1, 2, 3}) == "element 1 is 2.0000000199999999, PyTorch's 2");
  CHECK(difference_of({0, 1e-11}, {0, 0}) == "element 1 is 9.9999999999999994e-12, PyTorch's 0");
  CHECK(difference_of({NAN}, {1}) == "element 0 is nan, PyTorch's 1");
  CHECK(difference_of({1}, {NAN}) != "");
  CHECK(difference_of({1}, {INFINITY}) == "element 0 is 1, PyTorch's inf");
  CHECK(difference_of({-INFINITY, INFINITY}, {-INFINITY, INFINITY}) == "");
  CHECK(difference_of({1, 2}, {1}) == "shape [2] instead of [1]");
}

TEST_CASE("promise 9: only what somebody looks at is compared") {
  CHECK(difference_of({1, 9}, {1, 2}, Tensor::of<double>({2}, {0.5, 0})) == "");
  CHECK(difference_of({1, 9}, {1, 2}, Tensor::of<double>({2}, {0, 0.5})) == "element 1 is 9, PyTorch's 2");
}

TEST_CASE("promise 9: another function than PyTorch's differs in its output and in its gradient") {
  const Case c("activation", "gelu");
  NoParameters none;
  const Result wrong = run(c, none, f64, [](const Inputs& in) { return gelu_tanh(in["input"]); });
  CHECK(difference(wrong.output, c.at("output")) != "");
  CHECK(difference(wrong.gradients.at("input"), c.at("gradient.input")) != "");
}

TEST_CASE("promise 9: no cotangent and no gradient in the fixtures is zero") {
  for (const std::string file :
       {"linear", "layer_norm", "rms_norm", "embedding", "activation", "softmax", "cross_entropy", "attention",
        "encoder_layer", "decoder_layer", "transformer", "sequences", "gpt2_run", "state_dict_run"}) {
    i64 gradients = 0;
    for (const auto& entry : read_fixture(file)) {
      const std::string& name = entry.first;
      INFO(file, ": ", name);
      const bool gradient = name.find("/gradient.") != std::string::npos;
      gradients += gradient;
      if (gradient || name.ends_with("/cotangent")) CHECK(largest(entry.second) > 1e-3);
    }
    CHECK(gradients > 0);
  }
}
