// Chapter 4. Equal to PyTorch: GELU, softmax, cross entropy.
#include "autograd/ops.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

TEST_CASE("promise 9: gelu is torch.nn.functional.gelu, exact and by tanh") {
  check_equal(Case("activation", "gelu"), [](const Inputs& in) { return gelu(in["input"]); });
  check_equal(Case("activation", "gelu_tanh"), [](const Inputs& in) { return gelu_tanh(in["input"]); });
}

TEST_CASE("promise 9: softmax is torch.nn.functional.softmax, and its logarithm") {
  check_equal(Case("softmax", "softmax"), [](const Inputs& in) { return softmax(in["input"]); });
  check_equal(Case("softmax", "log_softmax"), [](const Inputs& in) { return log_softmax(in["input"]); });
}

TEST_CASE("promise 9: cross entropy is torch.nn.functional.cross_entropy") {
  const auto check_loss = [](const std::string& name, const CrossEntropyOptions& options) {
    INFO(name);
    check_equal(Case("cross_entropy", name),
                [&](const Inputs& in) { return cross_entropy(in["logits"], in.ids("targets"), options); });
  };
  check_loss("plain", {});
  check_loss("ignore_index", {.ignore_index = 0});
  check_loss("label_smoothing", {.label_smoothing = 0.1});
  check_loss("both", {.ignore_index = 0, .label_smoothing = 0.1});
  check_loss("sum", {.ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::sum});
}
