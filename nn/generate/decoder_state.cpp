// Chapter 7. Decoders one step at a time: their layers, whose attentions go on from their states.
#include "nn/generate/decoder_state.h"

#include <cmath>

#include "autograd/ops/embedding.h"

namespace orrery::nn {
namespace {

// Error: max_len is not between 1 and the model's number of positions.
void check_length(i64 max_len, i64 positions) {
  check(max_len > 0 && max_len <= positions, "decoder state", "max_len must be from 1 to ", positions,
        ", the model's positions, not ", max_len);
}

// A Transformer's states begin with room for at most this many positions: few sentences come near max_len. Doubled a
// few times, the room is for max_len, or hardly more. Those of a model without an encoder have room for max_len at
// once.
constexpr i64 most_at_first = 32;
i64 first_capacity(i64 max_len) {
  i64 capacity = max_len;
  while (capacity > most_at_first) capacity = (capacity + 1) / 2;
  return capacity;
}

// Errors: the state is full, or of a model of another dtype or with other numbers of layers than this one.
void check_fits(const DecoderState& state, const Tensor& tokens, Dtype dtype, size_t layers,
                size_t layers_with_memory) {
  const auto check_layers = [](size_t of_state, size_t of_model) {
    check(of_state == of_model, "decoder state", "is of a model of ", of_state, " layers, this one has ", of_model);
  };
  check_layers(state.self_attn.size(), layers);
  check_layers(state.memory.size(), layers_with_memory);
  const i64 n = dims<2>(tokens, "tokens")[1];
  check(n <= state.max_len - state.length, "decoder state", "is full: ", state.length, " + ", n, " positions of ",
        state.max_len);
  check(state.dtype == dtype, "decoder state", "dtypes differ (", dtype, " and ", state.dtype, ")");
}

// What step(after) returns; after an error the state is as before.
template <class Step> Variable whole_or_not(DecoderState& state, const Step& step) {
  DecoderState after = state;
  Variable y = step(after);
  state = std::move(after);
  return y;
}

// The decoder's output at the next positions.
Variable read(const Transformer& model, const Tensor& tokens, DecoderState& state) {
  const std::vector<DecoderLayer>& layers = model.decoder.layers;
  const Variable& table = model.tgt_embed.weight;
  check_fits(state, tokens, table.dtype(), layers.size(), layers.size());
  Pass pass = Pass::inference();
  const i64 end = state.length + tokens.size(1);
  Variable x = embedding_sum(table, tokens, std::sqrt(static_cast<double>(model.config.layer.d_model)),
                             constant(state.positions.rows(state.length, end)));
  state.length = end;
  for (size_t i = 0; i < layers.size(); ++i)
    x = layers[i].with_attentions(
        x, pass, [&](const Variable& in) { return layers[i].self_attn->next(in, state.self_attn[i]); },
        [&](const Variable& in) { return layers[i].multihead_attn->next(in, state.memory[i]); });
  return model.decoder.norm ? (*model.decoder.norm)(x) : x;
}

}  // namespace

DecoderState decoder_state(const Transformer& model, const Variable& memory, const Mask& memory_mask, i64 max_len,
                           const Tensor& source) {
  check_length(max_len, model.config.max_len);
  const Dtype dtype = memory.dtype();
  DecoderState state{.positions = model.tgt_positions.first_rows(max_len, dtype).value().rows(0, max_len),
                     .max_len = max_len,
                     .dtype = dtype};
  const Variable harmless = with_harmless_padding(memory, memory_mask);
  for (const DecoderLayer& layer : model.decoder.layers) {
    state.self_attn.push_back(layer.self_attn->state(memory.size(0), first_capacity(max_len), dtype));
    state.memory.push_back(layer.multihead_attn->memory_state(harmless, memory_mask));
  }
  state.copied = model.copied(source, harmless, memory_mask);
  return state;
}

DecoderState decoder_state(const CausalModel& model, i64 B, i64 max_len) {
  check_length(max_len, model.max_len());
  DecoderState state{.max_len = max_len, .dtype = model.dtype()};
  for (const EncoderLayer& layer : model.layers)
    state.self_attn.push_back(layer.self_attn->state(B, max_len, state.dtype));
  return state;
}

void DecoderState::choose(std::span<const i64> chosen) {
  for (AttentionState& state : self_attn) state.choose(chosen);
  for (AttentionState& state : memory) state.choose(chosen);
  if (copied) copied->choose(chosen);
}

Variable next_positions(const Transformer& model, const Tensor& tokens, DecoderState& state) {
  return whole_or_not(state, [&](DecoderState& after) { return read(model, tokens, after); });
}

Variable next_positions(const CausalModel& model, const Tensor& tokens, DecoderState& state) {
  check_fits(state, tokens, model.dtype(), model.layers.size(), 0);
  return whole_or_not(state, [&](DecoderState& after) {
    Pass pass = Pass::inference();
    Variable x = model.embed(tokens, pass, after.length);
    after.length += tokens.size(1);
    for (size_t i = 0; i < model.layers.size(); ++i)
      x = model.layers[i].with_attention(
          x, pass, [&](const Variable& in) { return model.layers[i].self_attn->next(in, after.self_attn[i]); });
    return model.normalized(x);
  });
}

Variable next_logits(const Transformer& model, const Tensor& tokens, DecoderState& state) {
  return whole_or_not(state, [&](DecoderState& after) {
    const Variable last = read(model, tokens, after);
    return model.logits(last, after.copied, tokens);
  });
}

}  // namespace orrery::nn
