// Chapter 7. The part of our Transformer that torch.nn.Transformer has: encoder and decoder, under the same names.
#pragma once

#include "core/mask.h"
#include "nn/decoder.h"

namespace orrery::torch_parity {

/// The two stacks of a model, wherever they stand, as one module: its names are those of torch.nn.Transformer's
/// state_dict.
struct Stacks : nn::Module {
  nn::Encoder& encoder;
  nn::Decoder& decoder;

  Stacks(nn::Encoder& encoder, nn::Decoder& decoder) : encoder(encoder), decoder(decoder) {}
  /// Embedded source [B, S, d_model] and target [B, T, d_model] to [B, T, d_model].
  Variable operator()(const Variable& source, const Variable& target, const Mask& source_padding,
                      const Mask& target_mask) const {
    nn::Pass pass = nn::Pass::training(1, 1);
    return decoder(target, encoder(source, source_padding, pass), target_mask, source_padding, pass);
  }
  void visit(nn::Visitor& v) override {
    v("encoder", encoder);
    v("decoder", decoder);
  }
};

}  // namespace orrery::torch_parity
