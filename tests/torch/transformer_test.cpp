// Chapter 7. Equal to PyTorch: encoder and decoder layers, the whole torch.nn.Transformer, ten steps of training it.
#include "nn/models/transformer.h"
#include "nn/models/stack.h"

#include "autograd/ops.h"
#include "optim/optim.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

constexpr i64 layers = 2;

nn::LayerOptions options_of(const std::string& form) {
  return {.d_model = 8,
          .num_heads = 2,
          .d_ff = 16,
          .dropout = 0,
          .norm_first = form == "pre_norm",
          .activation = form == "gelu" ? nn::Activation::gelu : nn::Activation::relu};
}

}  // namespace

TEST_CASE("promise 9: EncoderLayer is torch.nn.TransformerEncoderLayer") {
  for (const std::string form : {"post_norm", "pre_norm", "gelu"}) {
    INFO(form);
    Rng rng(1);
    nn::EncoderLayer layer(options_of(form), rng);
    check_equal(Case("encoder_layer", form), layer, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return layer(in["x"], Mask::padding(in.ids("lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: DecoderLayer is torch.nn.TransformerDecoderLayer") {
  for (const std::string form : {"post_norm", "pre_norm", "gelu"}) {
    INFO(form);
    Rng rng(1);
    nn::DecoderLayer layer(options_of(form), rng);
    check_equal(Case("decoder_layer", form), layer, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return layer(in["x"], in["memory"], Mask::causal() & Mask::padding(in.ids("lengths")),
                   Mask::padding(in.ids("memory_lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: Encoder and Decoder are torch.nn.Transformer") {
  for (const std::string form : {"post_norm", "pre_norm"}) {
    INFO(form);
    Rng rng(1);
    nn::Encoder encoder(layers, true, options_of(form), rng);
    nn::Decoder decoder(layers, true, options_of(form), rng);
    nn::Stacks stacks(encoder, decoder);
    check_equal(Case("transformer", form), stacks, [&](const Inputs& in) {
      nn::Pass pass = nn::Pass::training(1, 1);
      return stacks(in["source"], in["target"], Mask::padding(in.ids("source_lengths")),
                    Mask::causal() & Mask::padding(in.ids("target_lengths")), pass);
    });
  }
}

TEST_CASE("promise 9: ten steps of training have the losses of torch.nn.Transformer between embeddings and generator") {
  constexpr i64 words = 11, warmup = 20;
  for (const std::string form : {"post_norm", "pre_norm"}) {
    INFO(form);
    const Case c("training", form);
    Rng rng(1);
    nn::Transformer model(
        {.src_vocab_size = words,
         .tgt_vocab_size = words,
         .layer = {.d_model = 8, .num_heads = 2, .d_ff = 16, .dropout = 0, .norm_first = form == "pre_norm"},
         .num_encoder_layers = layers,
         .num_decoder_layers = layers,
         .final_norm = true,
         .pad_id = 0},
        rng);
    nn::to(model, f64);
    set_parameters(model, c.role("parameter"));
    optim::Adam adam(model.parameters(), {.beta2 = 0.98, .eps = 1e-9});
    const auto [steps, B, S] = dims<3>(c.at("source"), "source");
    REQUIRE(steps == 10);
    Tensor losses = zeros({steps}, f64);
    for (i64 step = 1; step <= steps; ++step) {
      const Tensor source = c.at("source").rows(step - 1, step).reshape({B, S});
      const Tensor target = c.at("target").rows(step - 1, step).reshape({B, S + 1});
      nn::Pass pass = nn::Pass::training(1, step);
      const Variable logits = model(source, slice(target, 1, 0, -1), pass);
      const Variable loss = cross_entropy(logits, slice(target, 1, 1), {.ignore_index = 0, .label_smoothing = 0.1});
      losses.write<double>()[step - 1] = loss.item();
      backward(loss);
      optim::clip_grad_norm(adam.parameters(), 1.0);
      adam.step(optim::noam(step, 8, warmup));
    }
    CHECK(difference(losses, c.at("losses")) == "");
    CHECK(losses.at(steps - 1) < losses.at(0));
  }
}
