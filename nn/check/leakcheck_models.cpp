// Chapter 7. The leak checks of each model: batches with padding, and which inputs may move which outputs.
#include "nn/check/leakcheck_models.h"

#include <algorithm>
#include <set>

#include "autograd/ops/fused/attention/packed_heads.h"
#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

// Three rows: one without padding, one with some, one that is mostly padding.
constexpr i64 rows = 3;
Tensor lengths_up_to(i64 longest) {
  const i32 n = static_cast<i32>(longest);
  return Tensor::of<i32>({rows}, {n, std::max(1, n - 2), std::max(1, n / 3)});
}

// The positions of a sequence to move. Empty for a short one, which means all.
std::vector<i64> moved_positions(const Tensor& lengths, i64 longest) {
  constexpr i64 all = 32, between = 300;
  std::set<i64> chosen;
  if (longest <= all) return {};
  for (i64 s = 0; s < longest; s += between) chosen.insert(s);
  for (i64 b = 0; b < rows; ++b)  // the last token of each row, and the first of its padding
    for (const i64 s : {lengths.data<i32>()[b] - 1, lengths.data<i32>()[b]})
      if (s < longest) chosen.insert(s);
  return {chosen.begin(), chosen.end()};
}

Mask padding_mask(const Tensor& lengths, MaskFault fault) {
  if (fault != MaskFault::padding) return Mask::padding(lengths);
  Tensor longer = lengths.clone();
  i32 *length = longer.write<i32>(), *end = length + rows;
  const i32 longest = *std::max_element(length, end);  // a mask of more keys than there are is an error
  std::transform(length, end, length, [=](i32 n) { return std::min(n + 1, longest); });
  return Mask::padding(longer);
}

Mask causal_mask(i64 T, MaskFault fault) {
  if (fault != MaskFault::causal) return Mask::causal();
  Tensor allow = Tensor::empty({T, T}, Dtype::i32);
  for (i64 i = 0; i < T * T; ++i) allow.write<i32>()[i] = i % T <= i / T + 1;
  return Mask::allow(allow);
}

// The masks of a Transformer for sequences of these lengths, which are undefined if it has no padding.
TransformerMasks faulty_masks(const Tensor& source_lengths, const Tensor& target_lengths, i64 T, MaskFault fault) {
  const auto padding = [&](const Tensor& lengths) { return lengths.defined() ? padding_mask(lengths, fault) : Mask(); };
  return {.source = padding(source_lengths),
          .target = causal_mask(T, fault) & padding(target_lengths),
          .memory = padding(source_lengths)};
}

// An output [B, ...] changed by the fault.
Tensor faulty(const Tensor& y, MaskFault fault) { return fault == MaskFault::batch ? y - mean(y, {0}, true) : y; }

// Random vectors of the model's dtype.
Tensor vectors(i64 length, i64 d_model, u64 seed, Module& model) {
  Rng rng(seed);
  return randn({rows, length, d_model}, rng, model.parameters().at(0).value.dtype());
}

// Random ids, with `pad_id` after the length of each row.
Tensor tokens(const Tensor& lengths, i64 length, i64 vocabulary, i32 pad_id, u64 seed) {
  Rng rng(seed);
  Tensor ids = randint(0, vocabulary, {rows, length}, rng);
  if (pad_id < 0) return ids;
  i32* id = ids.write<i32>();
  for (i64 i = 0; i < ids.count(); ++i) {
    if (i % length >= lengths.data<i32>()[i / length])
      id[i] = pad_id;
    else if (id[i] == pad_id)
      id[i] = static_cast<i32>((pad_id + 1) % vocabulary);
  }
  return ids;
}

}  // namespace

std::vector<LeakCheck> leakchecks(std::shared_ptr<Encoder> encoder, i64 d_model, MaskFault fault) {
  check(fault != MaskFault::causal, "leakcheck", "an encoder has no causal mask to break");
  constexpr i64 S = 6;
  const Tensor lengths = lengths_up_to(S);
  const auto output = [=, mask = padding_mask(lengths, fault)](const Tensor& x) {
    const NoGradient no_gradient;
    Pass pass;
    return faulty((*encoder)(constant(x), mask, pass).value(), fault);
  };
  return {{.name = "encoder",
           .input = vectors(S, d_model, 1, *encoder),
           .output = output,
           .may_move = within_sequence(false, lengths)}};
}

namespace {

// On sequences x [B, T, d_model] and memory [B, S, d_model].
std::vector<LeakCheck> decoder_checks(std::shared_ptr<Decoder> decoder, i64 d_model, MaskFault fault, i64 T, i64 S) {
  const Tensor lengths = lengths_up_to(T), memory_lengths = lengths_up_to(S);
  const Mask target = causal_mask(T, fault) & padding_mask(lengths, fault);
  const Mask source = padding_mask(memory_lengths, fault);
  const Tensor x = vectors(T, d_model, 2, *decoder), memory = vectors(S, d_model, 3, *decoder);
  const auto run = [=](const Tensor& in, const Tensor& from) {
    const NoGradient no_gradient;
    Pass pass;
    return faulty((*decoder)(constant(in), constant(from), target, source, pass).value(), fault);
  };
  return {{.name = "decoder",
           .input = x,
           .output = [=](const Tensor& in) { return run(in, memory); },
           .may_move = within_sequence(true, lengths),
           .positions = moved_positions(lengths, T)},
          {.name = "decoder",
           .inputs = "memory",
           .input = memory,
           .output = [=](const Tensor& from) { return run(x, from); },
           .may_move = across_sequences(memory_lengths),
           .positions = moved_positions(memory_lengths, S)}};
}

}  // namespace

std::vector<LeakCheck> leakchecks(std::shared_ptr<Decoder> decoder, i64 d_model, MaskFault fault) {
  return decoder_checks(decoder, d_model, fault, 6, 5);
}

std::vector<LeakCheck> leakchecks_in_tiles(std::shared_ptr<Decoder> decoder, i64 d_model, MaskFault fault) {
  constexpr i64 in_tiles = packed_heads::most_keys + 3, few = 5;
  return {decoder_checks(decoder, d_model, fault, in_tiles, few)[0],
          decoder_checks(decoder, d_model, fault, few, in_tiles)[1]};
}

std::vector<LeakCheck> leakchecks(std::shared_ptr<Transformer> model, MaskFault fault) {
  const TransformerConfig& config = model->config;
  check(fault != MaskFault::padding || config.pad_id >= 0, "leakcheck", "this model has no padding to break");
  const i64 S = std::min<i64>(6, config.max_len), T = std::min<i64>(7, config.max_len);
  const Tensor source_lengths = lengths_up_to(S), target_lengths = lengths_up_to(T);
  const Tensor source = tokens(source_lengths, S, config.src_vocab_size, config.pad_id, 4);
  const Tensor target = tokens(target_lengths, T, config.tgt_vocab_size, config.pad_id, 5);
  const Tensor from = config.pad_id < 0 ? Tensor() : source_lengths, to = config.pad_id < 0 ? Tensor() : target_lengths;
  const bool wrong_masks = fault == MaskFault::causal || fault == MaskFault::padding;
  const TransformerMasks masks = wrong_masks ? faulty_masks(from, to, T, fault) : model->masks(source, target);
  const auto logits = [=](const Tensor& read, const Tensor& written) {
    const NoGradient no_gradient;
    Pass pass;
    return faulty((*model)(read, written, masks, pass).value(), fault);
  };
  const auto memory = [=](const Tensor& read) {
    const NoGradient no_gradient;
    Pass pass;
    return faulty(model->encode(read, masks.source, pass).value(), fault);
  };
  return {{.name = "transformer",
           .inputs = "source",
           .outputs = "memory",
           .input = source,
           .output = memory,
           .may_move = within_sequence(false, from),
           .vocabulary = config.src_vocab_size},
          {.name = "transformer",
           .inputs = "source",
           .outputs = "logits",
           .input = source,
           .output = [=](const Tensor& read) { return logits(read, target); },
           .may_move = across_sequences(from),
           .vocabulary = config.src_vocab_size},
          {.name = "transformer",
           .inputs = "target",
           .outputs = "logits",
           .input = target,
           .output = [=](const Tensor& written) { return logits(source, written); },
           .may_move = within_sequence(true, to),
           .vocabulary = config.tgt_vocab_size}};
}

std::vector<LeakCheck> leakchecks(std::shared_ptr<CausalModel> model, MaskFault fault) {
  check(fault != MaskFault::padding, "leakcheck", "this model has no padding to break");
  const i64 T = std::min<i64>(7, model->max_len()), vocabulary = model->vocab_size();
  const auto logits = [=](const Tensor& ids) {
    const NoGradient no_gradient;
    Pass pass;
    if (fault != MaskFault::causal) return faulty((*model)(ids, pass).value(), fault);
    // Such a model accepts no other mask, so its steps are repeated here with the wrong one.
    Variable x = model->embed(ids, pass);
    for (const EncoderLayer& layer : model->layers) x = layer(x, causal_mask(T, fault), pass);
    return model->head(model->normalized(x)).value();
  };
  return {{.name = "gpt",
           .inputs = "ids",
           .outputs = "logits",
           .input = tokens(lengths_up_to(T), T, vocabulary, -1, 6),
           .output = logits,
           .may_move = within_sequence(true),
           .vocabulary = vocabulary}};
}

std::vector<LeakCheck> leakchecks(std::shared_ptr<Bert> model, MaskFault fault) {
  const BertConfig& config = model->config;
  check(fault != MaskFault::causal, "leakcheck", "an encoder has no causal mask to break");
  check(fault != MaskFault::padding || config.pad_id >= 0, "leakcheck", "this model has no padding to break");
  const i64 S = std::min<i64>(6, config.max_positions);
  const Tensor lengths = config.pad_id < 0 ? Tensor() : lengths_up_to(S);
  const Tensor ids = tokens(lengths_up_to(S), S, config.vocab_size, config.pad_id, 7);
  Rng rng(8);
  Tensor segments = randint(0, config.type_vocab_size, ids.shape(), rng);
  const i64 sentences = std::min(S / 2, config.type_vocab_size);  // of each row, one after the other
  for (i64 i = 0; config.sentence_sums && i < segments.count(); ++i)
    segments.write<i32>()[i] = static_cast<i32>(i % S * sentences / S);
  const Mask mask = lengths.defined() ? padding_mask(lengths, fault) : Mask();
  const auto hidden = [=](const Tensor& words, const Tensor& parts) {
    const NoGradient no_gradient;
    Pass pass;
    return faulty(model->hidden(words, parts, mask, pass).value(), fault);
  };
  std::vector<LeakCheck> checks{
      {.name = "bert",
       .inputs = "ids",
       .outputs = config.sentence_sums ? "sentences" : "y",
       .input = ids,
       .output = [=](const Tensor& words) { return hidden(words, segments); },
       .may_move = config.sentence_sums ? across_sequences(lengths) : within_sequence(false, lengths),
       .vocabulary = config.vocab_size}};
  if (config.type_vocab_size > 1 && !config.sentence_sums)
    checks.push_back({.name = "bert",
                      .inputs = "segments",
                      .input = segments,
                      .output = [=](const Tensor& parts) { return hidden(ids, parts); },
                      .may_move = within_sequence(false, lengths),
                      .vocabulary = config.type_vocab_size});
  if (config.has_pooler())
    checks.push_back({.name = "bert",
                      .inputs = "ids",
                      .outputs = "pooled",
                      .input = ids,
                      .output =
                          [=](const Tensor& words) {
                            const Tensor pooled = model->pooled(constant(hidden(words, segments))).value();
                            return pooled.reshape({rows, 1, pooled.size(1)});
                          },
                      .may_move = across_sequences(lengths),
                      .vocabulary = config.vocab_size});
  return checks;
}

}  // namespace orrery::nn
