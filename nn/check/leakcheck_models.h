// Chapter 7. What must not leak: the leak checks of each model, and masks broken on purpose.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property."
//   Encoder       x -> y                       padding
//   Decoder       x -> y, memory -> y          causality and padding; padding of the memory
//   Transformer   source -> memory, source -> logits, target -> logits
//   Gpt           ids -> logits                causality; it knows no padding
// Every batch has rows of different lengths, so that each check sees padding, and other rows besides.
// Serves: autograd/check/proof.h
#pragma once

#include <memory>

#include "nn/check/leakcheck.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// A mistake built in, so that the check can be seen to find it.
enum class MaskFault {
  none,
  causal,   ///< every position sees one token too many: j <= i + 1
  padding,  ///< the first padded position counts as a token
  batch,    ///< outputs are centred over the rows of the batch, as a batch norm would
};

/// An encoder's checks, on x [B, S, d_model].
std::vector<LeakCheck> leakchecks(std::shared_ptr<Encoder> encoder, i64 d_model, MaskFault fault = MaskFault::none);
/// A decoder's, on x [B, T, d_model] with memory [B, S, d_model].
std::vector<LeakCheck> leakchecks(std::shared_ptr<Decoder> decoder, i64 d_model, MaskFault fault = MaskFault::none);
/// The same with so many keys that attention goes by tiles (autograd/ops/fused/tiled_attention.h): to x with a short
/// memory, to the memory with a short x. Some positions are moved: of each row the last token and the first of its
/// padding, and a few more.
std::vector<LeakCheck> leakchecks_in_tiles(std::shared_ptr<Decoder> decoder, i64 d_model,
                                           MaskFault fault = MaskFault::none);
/// A whole model's, on token ids. Without a fault the masks are those that `model` itself makes of the ids.
std::vector<LeakCheck> leakchecks(std::shared_ptr<Transformer> model, MaskFault fault = MaskFault::none);
std::vector<LeakCheck> leakchecks(std::shared_ptr<Gpt> model, MaskFault fault = MaskFault::none);

}  // namespace orrery::nn
