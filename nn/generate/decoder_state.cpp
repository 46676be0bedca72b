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
// few times, the room is for max_len, or hardly more. Those of a GPT have room for max_len at once.
constexpr i64 most_at_first = 32;
i64 first_capacity(i64 max_len) {
  i64 capacity = max_len;
  while (capacity > most_at_first) capacity = (capacity + 1) / 2;
  return capacity;
}

// Error: the state belongs to a model with more or fewer layers than this model.
void check_layers(size_t of_state, size_t of_model) {
  check(of_state == of_model, "decoder state", "is of a model of ", of_state, " layers, this one has ", of_model);
}

// The input of the first layer for tokens [B, n] that follow those read so far.
Variable embedded(const Embedding& table, double factor, const Tensor& tokens, const DecoderState& state) {
  const i64 end = state.length + dims<2>(tokens, "tokens")[1], room = state.positions.size(0);
  check(end <= room, "decoder state", "is full: ", state.length, " + ", end - state.length, " positions of ", room);
  const Dtype of_model = table.weight.dtype(), of_state = state.positions.dtype();
  check(of_state == of_model, "decoder state", "dtypes differ (", of_model, " and ", of_state, ")");
  return embedding_sum(table.weight, tokens, factor, constant(state.positions.rows(state.length, end)));
}

}  // namespace

DecoderState decoder_state(const Transformer& model, const Variable& memory, const Mask& memory_mask, i64 max_len) {
  check_length(max_len, model.config.max_len);
  const Tensor positions = model.tgt_positions.first_rows(max_len, memory.dtype()).value();
  DecoderState state{.self_attn = {}, .memory = {}, .positions = positions.rows(0, max_len)};
  const Variable harmless = with_harmless_padding(memory, memory_mask);
  for (const DecoderLayer& layer : model.decoder.layers) {
    state.self_attn.push_back(layer.self_attn->state(memory.size(0), first_capacity(max_len), memory.dtype()));
    state.memory.push_back(layer.multihead_attn->memory_state(harmless, memory_mask));
  }
  return state;
}

DecoderState decoder_state(const Gpt& model, i64 B, i64 max_len) {
  check_length(max_len, model.config.max_len);
  const Tensor& positions = model.position_embedding.weight.value();
  DecoderState state{.self_attn = {}, .memory = {}, .positions = positions.rows(0, max_len)};
  for (const EncoderLayer& layer : model.layers)
    state.self_attn.push_back(layer.self_attn->state(B, max_len, positions.dtype()));
  return state;
}

void DecoderState::choose(std::span<const i64> chosen) {
  for (AttentionState& state : self_attn) state.choose(chosen);
  for (AttentionState& state : memory) state.choose(chosen);
}

Variable next_positions(const Transformer& model, const Tensor& tokens, DecoderState& state) {
  check_layers(state.self_attn.size(), model.decoder.layers.size());
  check_layers(state.memory.size(), model.decoder.layers.size());
  Pass pass = Pass::inference();
  const double root_d_model = std::sqrt(static_cast<double>(model.config.layer.d_model));
  DecoderState after = state;  // so that after an error the state is as before
  Variable x = embedded(model.tgt_embed, root_d_model, tokens, state);
  for (size_t i = 0; i < after.self_attn.size(); ++i) {
    const DecoderLayer& layer = model.decoder.layers[i];
    x = layer.with_attentions(
        x, pass, [&](const Variable& in) { return layer.self_attn->next(in, after.self_attn[i]); },
        [&](const Variable& in) { return layer.multihead_attn->next(in, after.memory[i]); });
  }
  if (model.decoder.norm) x = (*model.decoder.norm)(x);
  after.length += x.size(1);
  state = std::move(after);
  return x;
}

Variable next_positions(const Gpt& model, const Tensor& tokens, DecoderState& state) {
  check_layers(state.self_attn.size(), model.layers.size());
  Pass pass = Pass::inference();
  DecoderState after = state;
  Variable x = embedded(model.token_embedding, 1.0, tokens, state);
  for (size_t i = 0; i < after.self_attn.size(); ++i) {
    const EncoderLayer& layer = model.layers[i];
    x = layer.with_attention(x, pass,
                             [&](const Variable& in) { return layer.self_attn->next(in, after.self_attn[i]); });
  }
  x = model.final_norm(x);
  after.length += x.size(1);
  state = std::move(after);
  return x;
}

}  // namespace orrery::nn
