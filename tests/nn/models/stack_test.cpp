// Chapter 7. Tests of what stacks share: options of layers, the names of PyTorch's stacks, and the loss from a head.
#include "nn/models/stack.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

struct Doubled : LinearMap {
  Linear base;
  explicit Doubled(Linear linear) : base(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return scale(base(x, rows), 2.0); }
  Doubled clone() const { return Doubled(base.clone()); }
  void visit(Visitor& v) override { v.inlined(base); }
};

}  // namespace

TEST_CASE("the loss of a head is the cross entropy of its logits, whatever the head is") {
  Rng rng(1);
  Linear plain(5, 7, rng);
  to(plain, f64);
  const Variable last = parameter(randn({2, 3, 5}, rng, f64));
  const Tensor labels = Tensor::of<i32>({2, 3}, {1, 6, -100, 0, 3, 3});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const double expected = cross_entropy(plain(last), labels, options).value().item(),
               doubled = cross_entropy(scale(plain(last), 2.0), labels, options).value().item();
  CHECK(head_loss(plain, last, labels, options).value().item() == doctest::Approx(expected).epsilon(1e-12));
  CHECK(head_loss(Linear(Doubled(plain.clone())), last, labels, options).value().item() ==
        doctest::Approx(doubled).epsilon(1e-12));
  CHECK(doubled != doctest::Approx(expected).epsilon(1e-3));
}

TEST_CASE("options that are not given follow from those that are") {
  LayerOptions options{.d_model = 8, .num_heads = 2, .dropout = 0.3, .bias = false};
  CHECK(options.attention().dropout == 0.3);
  CHECK(options.feed_forward().dropout == 0.3);
  CHECK(options.feed_forward().activation == Activation::relu);
  CHECK_FALSE(options.linear().bias);
  CHECK_FALSE(options.norm().bias);
  options.attention_dropout = 0.0;
  options.activation_dropout = 0.2;
  options.activation = Activation::gelu;
  CHECK(options.attention().dropout == 0);
  CHECK(options.feed_forward().dropout == 0.2);
  CHECK(options.feed_forward().activation == Activation::gelu);
}

TEST_CASE("values out of range, and two that do not fit, are refused by name") {
  const auto refusal = [](auto change) {
    LayerOptions options{.d_model = 8, .num_heads = 2};
    change(options);
    return small::error_of([&] { options.validate("model"); });
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK(refusal([](auto& o) { o.d_ff = 0; }) == "model: d_ff must be positive, not 0");
  CHECK(refusal([](auto& o) { o.num_heads = 3; }) ==
        "model: d_model (8) is not a multiple of num_heads (3); give d_k and d_v");
  CHECK(refusal([](auto& o) {
          o.num_heads = 3;
          o.d_k = 4;
          o.d_v = 5;
        }) == "");
  CHECK(refusal([](auto& o) { o.activation_dropout = 1; }).starts_with("model: activation_dropout must be in [0, 1)"));
  CHECK(refusal([](auto& o) { o.layer_norm_eps = 0; }).starts_with("model: layer_norm_eps must be in (0, 1)"));
}

TEST_CASE("with the library alone a state_dict of torch.nn.Transformer loads into a Transformer's stacks") {
  const std::string path = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/state_dict.safetensors";
  const TensorMap file = read_safetensors(path).tensors;
  Rng rng(1);
  nn::Transformer model({.src_vocab_size = 11,
                         .tgt_vocab_size = 11,
                         .layer = {.d_model = 8, .num_heads = 2, .d_ff = 16},
                         .num_encoder_layers = 2,
                         .num_decoder_layers = 2,
                         .final_norm = true},
                        rng);
  const Tensor embedding = model.src_embed.weight.value().clone();
  CHECK_THROWS_AS(nn::load(model, path), Error);  // it has neither embeddings nor generator
  nn::Stacks stacks(model.encoder, model.decoder);
  nn::load(stacks, path);
  const TensorMap ours = nn::tensors_on_disk(stacks);
  CHECK(ours.size() == file.size());
  for (const auto& entry : ours) {
    REQUIRE(file.contains(entry.first));
    CHECK(same_bits(entry.second, file.at(entry.first)));
  }
  CHECK(same_bits(model.encoder.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(),
                  file.at("encoder.layers.1.self_attn.in_proj_weight")));
  CHECK(same_bits(model.src_embed.weight.value(), embedding));
}
