// Chapter 7. Decoders one step at a time: their layers, called with caches.
#include "nn/generate/decoder_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops/embedding.h"

namespace orrery::nn {
namespace {

// Error: max_len is not between 1 and the model's number of positions.
void check_length(i64 max_len, i64 positions) {
  check(max_len > 0 && max_len <= positions, "decoder state", "max_len must be from 1 to ", positions,
        ", the model's positions, not ", max_len);
}

// Rows of a table of positions for n tokens after the first `length`.
Variable following(const Tensor& positions, i64 length, i64 n) {
  check(length + n <= positions.size(0), "decoder state", "is full: ", length, " + ", n, " positions of ",
        positions.size(0));
  return constant(positions.rows(length, length + n));
}

// The caches of a Transformer begin with room for this many positions and grow: few sentences come near max_len. Those
// of a GPT have room for max_len at once.
constexpr i64 first_capacity = 32;

// Error: the state belongs to a model with more or fewer layers than this model.
void check_layers(size_t of_state, size_t of_model) {
  check(of_state == of_model, "decoder state", "is of a model of ", of_state, " layers, this one has ", of_model);
}

// What `step` returns. If it fails, the caches forget what it appended, so that the same step can be made again.
template <class Step>
Variable whole_or_not_at_all(std::vector<KeyValueCache>& layers, const Step& step) {
  const i64 before = layers.empty() ? 0 : layers[0].length;
  try {
    return step();
  } catch (...) {
    for (KeyValueCache& cache : layers) cache.length = before;
    throw;
  }
}

}  // namespace

DecoderState decoder_state(const Transformer& model, const Variable& memory, const Mask& memory_mask, i64 max_len,
                           i64 beam) {
  check_length(max_len, model.config.max_len);
  check(beam >= 1, "decoder state", "beam must be 1 or more, not ", beam);
  DecoderState state{.self_attn = {},
                     .memory = {},
                     .memory_mask = memory_mask,
                     .positions = model.tgt_positions.first_rows(max_len, memory.dtype()).value().rows(0, max_len)};
  for (const DecoderLayer& layer : model.decoder.layers) {
    // Room for `beam` hypotheses of each source; at first there is one, in the slot with the number of its source.
    KeyValueCache& cache = state.self_attn.emplace_back(
        layer.self_attn->empty_cache(memory.size(0) * beam, std::min(first_capacity, max_len), memory.dtype()));
    cache.slots.resize(static_cast<size_t>(memory.size(0)));
    std::iota(cache.slots.begin(), cache.slots.end(), i64{0});
    state.memory.push_back(layer.multihead_attn->cache_memory(memory));
  }
  return state;
}

void DecoderState::make_room(i64 n) {
  for (KeyValueCache& cache : self_attn) {
    if (cache.length + n > cache.capacity())
      cache.reserve(std::min(positions.size(0), std::max(cache.length + n, 2 * cache.capacity())));
  }
}

void DecoderState::choose(std::span<const i64> chosen) {
  for (KeyValueCache& cache : self_attn) cache.choose(chosen);
  for (KeyValueCache& cache : memory) cache.share(chosen);
}

Variable next_positions(const Transformer& model, const Tensor& tokens, DecoderState& state) {
  check_layers(state.self_attn.size(), model.decoder.layers.size());
  check_layers(state.memory.size(), model.decoder.layers.size());
  Pass pass = Pass::inference();
  const double root_d_model = std::sqrt(static_cast<double>(model.config.layer.d_model));
  const i64 n = dims<2>(tokens, "tokens")[1];
  Variable x =
      embedding_sum(model.tgt_embed.weight, tokens, root_d_model, following(state.positions, state.length(), n));
  return whole_or_not_at_all(state.self_attn, [&] {
    state.make_room(n);
    for (size_t i = 0; i < state.self_attn.size(); ++i) {
      const DecoderLayer& layer = model.decoder.layers[i];
      x = layer.with_attentions(
          x, pass, [&](const Variable& in) { return layer.self_attn->extend(in, state.self_attn[i]); },
          [&](const Variable& in) {
            return layer.multihead_attn->attend_to_cached(in, state.memory[i], state.memory_mask);
          });
    }
    return model.decoder.norm ? (*model.decoder.norm)(x) : x;
  });
}

GptState gpt_state(const Gpt& model, i64 B, i64 max_len) {
  check_length(max_len, model.config.max_len);
  GptState state;
  const Dtype dtype = model.token_embedding.weight.dtype();
  for (const EncoderLayer& layer : model.layers)
    state.layers.push_back(layer.self_attn->empty_cache(B, max_len, dtype));
  return state;
}

Variable next_positions(const Gpt& model, const Tensor& tokens, GptState& state) {
  check_layers(state.layers.size(), model.layers.size());
  Pass pass = Pass::inference();
  const Tensor& positions = model.position_embedding.weight.value();
  Variable x = embedding_sum(model.token_embedding.weight, tokens, 1.0,
                             following(positions, state.length(), dims<2>(tokens, "tokens")[1]));
  return whole_or_not_at_all(state.layers, [&] {
    for (size_t i = 0; i < state.layers.size(); ++i) {
      const EncoderLayer& layer = model.layers[i];
      x = layer.with_attention(x, pass,
                               [&](const Variable& in) { return layer.self_attn->extend(in, state.layers[i]); });
    }
    return model.final_norm(x);
  });
}

}  // namespace orrery::nn
