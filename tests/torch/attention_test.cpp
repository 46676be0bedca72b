// Chapter 6. Equal to PyTorch: multi-head attention, with every kind of mask.
#include "nn/attention/attention.h"

#include "core/mask.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

// `mask_of` makes the mask from the case's inputs.
template <class MaskOf>
void check_attention(const std::string& name, const MaskOf& mask_of, bool bias = true) {
  INFO(name);
  const Case c("attention", name);
  Rng rng(1);
  nn::MultiHeadAttention layer(12, 3, rng, {.bias = bias});
  const bool cross = name.starts_with("cross");
  nn::AttentionRecorder seen;
  check_equal(c, layer, [&](const Inputs& in) {
    nn::Pass pass = nn::Pass::training(1, 1);
    pass.recorder = &seen;
    const Mask mask = mask_of(in);
    const Variable y = cross ? layer(in["x"], in["memory"], mask, pass) : layer(in["x"], mask, pass);
    if (y.dtype() == f64) CHECK(difference(seen.of(layer), c.at("weights")) == "");
    return y;
  });
}

const auto everything = [](const Inputs&) { return Mask(); };
const auto causal = [](const Inputs&) { return Mask::causal(); };
const auto padding = [](const Inputs& in) { return Mask::padding(in.ids("lengths")); };

}  // namespace

TEST_CASE("promise 9: self-attention is torch.nn.MultiheadAttention") {
  check_attention("self", everything);
  check_attention("self_without_bias", everything, false);
}

TEST_CASE("promise 9: masked self-attention is torch.nn.MultiheadAttention with a mask") {
  check_attention("self_causal", causal);
  check_attention("self_padding", padding);
  check_attention("self_causal_padding", [](const Inputs& in) { return causal(in) & padding(in); });
  check_attention("self_table", [](const Inputs& in) { return Mask::allow(in.ids("table")); });
}

TEST_CASE("promise 9: cross-attention is torch.nn.MultiheadAttention over a memory") {
  check_attention("cross", everything);
  check_attention("cross_padding", padding);
}
