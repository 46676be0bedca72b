// Chapter 7. Stacks: encoder and decoder of our Transformer as one module, with the names of torch.nn.Transformer.
//
// PyTorch's module has neither embeddings nor a generator: its state_dict holds "encoder.layers.0.self_attn..." and so
// on, and nothing else. Seen through this module, our model has exactly those names. So its parameters can be read from
// a state_dict, and written to one that load_state_dict(strict=True) accepts:
//   nn::Transformer model({.src_vocab_size = 8000, .tgt_vocab_size = 8000, .final_norm = true}, rng);
//   nn::Stacks stacks(model.encoder, model.decoder);
//   nn::load(stacks, "state_dict.safetensors");
// torch.nn.Transformer always has final norms, so `final_norm` must be true.
#pragma once

#include "core/mask.h"
#include "nn/models/decoder.h"

namespace orrery::nn {

/// The two stacks of a model as one module. It refers to them, so it must not outlive them.
struct Stacks : Module {
  Encoder& encoder;
  Decoder& decoder;

  Stacks(Encoder& encoder, Decoder& decoder) : encoder(encoder), decoder(decoder) {}
  /// Embedded source [B, S, d_model] and target [B, T, d_model] to [B, T, d_model]. `target_mask` must include
  /// Mask::causal() if the target must not see later positions.
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
