// Chapter 7. Greedy decoding: one token for every row at a time, until all have ended.
//
// Read next: nn/stacks.h
#include "nn/decoding.h"

#include "core/tensor_ops.h"

namespace orrery::nn {

Tensor greedy_decode(const Transformer& model, const Tensor& source, const GreedyOptions& options) {
  const i64 B = dims<2>(source, "source")[0];
  check(options.max_len > 0 && options.max_len <= model.config.max_len, "greedy_decode", "max_len must be from 1 to ",
        model.config.max_len, ", the model's positions, not ", options.max_len);
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Mask source_mask = model.padding(source);
  const Variable memory = model.encode(source, source_mask, pass);
  const i32 pad = model.config.pad_id >= 0 ? model.config.pad_id : options.eos;

  Tensor target = full({B, 1}, options.bos);
  std::vector<bool> ended(static_cast<size_t>(B), false);
  i64 running = B;
  while (running > 0 && target.size(1) <= options.max_len) {
    const Variable logits = model.decode(target, memory, Mask::causal(), source_mask, pass);
    Tensor next = argmax(slice(logits.value(), 1, -1));  // [B, 1]
    i32* token = next.write<i32>();
    for (i64 b = 0; b < B; ++b) {
      if (ended[static_cast<size_t>(b)]) {
        token[b] = pad;
      } else if (token[b] == options.eos) {
        ended[static_cast<size_t>(b)] = true;
        --running;
      }
    }
    target = concat({target, next}, 1);
  }
  return slice(target, 1, 1);
}

}  // namespace orrery::nn
