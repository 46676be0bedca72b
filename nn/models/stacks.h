// Chapter 7. Stacks: the part of our Transformer that torch.nn.Transformer has, encoder and decoder, under its names.
//
// PyTorch's module knows neither embeddings nor generator: its state_dict holds "encoder.layers.0.self_attn..." and so
// on, and no more. Seen through this module a model of ours has exactly those names, so that the library alone reads a
// state_dict into it and writes one that load_state_dict(strict=True) takes:
//   nn::Transformer model({.src_vocab_size = 8000, .tgt_vocab_size = 8000, .final_norm = true}, rng);
//   nn::Stacks stacks(model.encoder, model.decoder);
//   nn::load(stacks, "state_dict.safetensors");
// torch.nn.Transformer always has final norms, so `final_norm` must be true.
// Serves: nn/models/transformer.h
#pragma once

#include "core/mask.h"
#include "nn/models/decoder.h"

namespace orrery::nn {

/// The two stacks of a model as one module. It refers to them and must not outlive them.
struct Stacks : Module {
  Encoder& encoder;
  Decoder& decoder;

  Stacks(Encoder& encoder, Decoder& decoder) : encoder(encoder), decoder(decoder) {}
  /// Embedded source [B, S, d_model] and target [B, T, d_model] to [B, T, d_model]; `target_mask` must hold
  /// Mask::causal() where the target must not see its future.
  Variable operator()(const Variable& source, const Variable& target, const Mask& source_padding,
                      const Mask& target_mask, Pass& pass) const {
    return decoder(target, encoder(source, source_padding, pass), target_mask, source_padding, pass);
  }
  void visit(Visitor& v) override {
    v("encoder", encoder);
    v("decoder", decoder);
  }
};

}  // namespace orrery::nn
