// Chapter 9. Counting the numbers that a training holds.
#include "apps/training/memory.h"

#include <filesystem>
#include <system_error>

#include "apps/program/machine.h"
#include "autograd/ops/fused/attention/packed_heads.h"
#include "core/error.h"
#include "core/machine/memory.h"

namespace orrery {
namespace {

// For one token, by self-attention without its weights, and by the feed-forward network.
double kept_by_layer(const nn::LayerOptions& layer) {
  return 4 * static_cast<double>(layer.d_model) + static_cast<double>(layer.d_ff);
}

// The weights of one attention, for one row of the batch.
double kept_weights(const nn::LayerOptions& layer, i64 queries, i64 keys) {
  return keys > packed_heads::most_keys ? 0
                                        : static_cast<double>(layer.num_heads) * static_cast<double>(queries * keys);
}

void check_fits(const std::string& program, const std::string& who_needs, double needed) {
  constexpr double megabyte = 1 << 20;
  const double there = static_cast<double>(physical_memory());
  const double limit = static_cast<double>(memory_counters().limit_bytes);
  const auto check_against = [&](double bytes, const char* who) {
    check(needed <= bytes, program, who_needs, " at least ", static_cast<i64>(needed / megabyte),
          " MB of memory here; ", who, static_cast<i64>(bytes / megabyte), " MB");
  };
  check_against(there, "the machine has ");
  if (limit > 0) check_against(limit, "--max-memory (if not given, nine tenths of what is free) allows ");
}

}  // namespace

double kept_numbers(const nn::TransformerConfig& model, i64 batch, i64 source_length, i64 target_length,
                    LossHead head) {
  const nn::LayerOptions& layer = model.layer;
  const double source = static_cast<double>(source_length), target = static_cast<double>(target_length);
  const double encoder = source * kept_by_layer(layer) + kept_weights(layer, source_length, source_length);
  // Of cross-attention, q and the output exist for each target token, k and v for each source token.
  const double cross = 2 * static_cast<double>(layer.d_model) * (source + target);
  const double decoder = target * kept_by_layer(layer) + cross + kept_weights(layer, target_length, target_length) +
                         kept_weights(layer, target_length, source_length);
  const double logits = head == LossHead::composed ? target * static_cast<double>(model.tgt_vocab_size) : 0;
  return static_cast<double>(batch) * (static_cast<double>(model.num_encoder_layers) * encoder +
                                       static_cast<double>(model.num_decoder_layers) * decoder + logits);
}

double kept_numbers(const nn::GptConfig& model, i64 batch, i64 length) {
  return static_cast<double>(batch) * static_cast<double>(model.num_layers) *
         (static_cast<double>(length) * kept_by_layer(model.layer) + kept_weights(model.layer, length, length));
}

double bytes_of(const MemoryNeed& need) {
  return static_cast<double>(bytes_of(f32)) *
         (static_cast<double>(need.parameters) * static_cast<double>(need.copies) + need.kept);
}

void check_memory(const std::string& program, const MemoryNeed& need) {
  check_fits(program, "a model of " + std::to_string(need.parameters) + " parameters needs", bytes_of(need));
}

void check_memory_for_texts(const std::string& program, const std::vector<std::string>& files) {
  double bytes = 0;
  for (const std::string& file : files) {
    std::error_code not_there;
    const auto size = std::filesystem::file_size(file, not_there);
    if (!not_there) bytes += 2 * static_cast<double>(size);
  }
  check_fits(program, "the texts need", bytes);
}

}  // namespace orrery
