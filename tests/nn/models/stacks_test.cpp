// Chapter 7. Tests of the stacks as one module: names as in PyTorch, and the same memory as the model's.
#include "nn/models/stacks.h"

#include <doctest/doctest.h>

#include "nn/files/files.h"
#include "nn/models/transformer.h"

using namespace orrery;

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
  const Parameters parameters = stacks.named_parameters();
  CHECK(parameters.size() == file.size());
  for (const NamedParameter& p : parameters) {
    REQUIRE(file.contains(p.name));
    CHECK(same_bits(p.value.value(), file.at(p.name)));
  }
  CHECK(same_bits(model.encoder.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(),
                  file.at("encoder.layers.1.self_attn.in_proj_weight")));
  CHECK(same_bits(model.src_embed.weight.value(), embedding));
}
