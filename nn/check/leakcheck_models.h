// Chapter 7. The leak checks of each model, and deliberately broken masks to test the checks.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property."
//   Encoder       x -> y                       padding
//   Decoder       x -> y, memory -> y          causality and padding; padding of the memory
//   Transformer   source -> memory, source -> logits, target -> logits
//   CausalModel   ids -> logits                causality; a GPT has no padding
//   Bert          ids -> y, segments -> y      padding; ids -> the pooled vector, or those of sentences
// Every batch has several rows, so that each check includes other rows. With padding, their lengths differ.
#pragma once

#include <memory>

#include "nn/check/leakcheck.h"
#include "nn/models/bert.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// A deliberate mistake, which the check must find.
enum class MaskFault {
  none,
  causal,   ///< every position sees one token too many: j <= i + 1
  padding,  ///< the first padded position counts as a token
  batch,    ///< outputs are centred over the rows of the batch, as a batch norm would
};

/// The checks of an encoder, on x [B, S, d_model]. Error: a causal fault, since an encoder has no causal mask.
std::vector<LeakCheck> leakchecks(std::shared_ptr<Encoder> encoder, i64 d_model, MaskFault fault = MaskFault::none);
/// The checks of a decoder, on x [B, T, d_model] with memory [B, S, d_model].
std::vector<LeakCheck> leakchecks(std::shared_ptr<Decoder> decoder, i64 d_model, MaskFault fault = MaskFault::none);
/// The same with enough keys that attention is computed in tiles (autograd/ops/fused/attention/tiled_attention.h): once
/// with a long x and a short memory, once with a short x and a long memory. Only some positions are moved: in each row
/// the last token, the first padding, and a few others.
std::vector<LeakCheck> leakchecks_in_tiles(std::shared_ptr<Decoder> decoder, i64 d_model,
                                           MaskFault fault = MaskFault::none);
/// The checks of a whole model, on token ids. Without a fault they use the masks that the model makes from the ids.
std::vector<LeakCheck> leakchecks(std::shared_ptr<Transformer> model, MaskFault fault = MaskFault::none);
std::vector<LeakCheck> leakchecks(std::shared_ptr<CausalModel> model, MaskFault fault = MaskFault::none);
/// Error: a causal fault, as of an encoder; a padding fault of a model without padding.
std::vector<LeakCheck> leakchecks(std::shared_ptr<Bert> model, MaskFault fault = MaskFault::none);

}  // namespace orrery::nn
