// Chapter 9. Counting the numbers that a training holds.
//
// Serves: apps/toy/toy.cpp
#include "apps/training/memory.h"

#include "apps/program/machine.h"
#include "core/error.h"

namespace orrery {
namespace {

// For one token, by a layer with this number of attentions.
double kept_by_layer(i64 d_model, i64 d_ff, i64 attentions) {
  return 4.0 * static_cast<double>(attentions * d_model) + static_cast<double>(d_ff);
}

}  // namespace

double kept_numbers(const nn::TransformerConfig& model, i64 batch, i64 source_length, i64 target_length) {
  const double encoder =
      static_cast<double>(model.num_encoder_layers) * kept_by_layer(model.layer.d_model, model.layer.d_ff, 1);
  const double decoder =
      static_cast<double>(model.num_decoder_layers) * kept_by_layer(model.layer.d_model, model.layer.d_ff, 2);
  return static_cast<double>(batch) *
         (static_cast<double>(source_length) * encoder + static_cast<double>(target_length) * decoder);
}

double kept_numbers(const nn::GptConfig& model, i64 batch, i64 length) {
  return static_cast<double>(batch) * static_cast<double>(length) * static_cast<double>(model.num_layers) *
         kept_by_layer(model.layer.d_model, model.layer.d_ff, 1);
}

double bytes_of(const MemoryNeed& need) {
  return static_cast<double>(bytes_of(f32)) *
         (static_cast<double>(need.parameters) * static_cast<double>(need.copies) + need.kept);
}

void check_memory(const std::string& program, const MemoryNeed& need) {
  constexpr double megabyte = 1 << 20;
  const double needed = bytes_of(need), there = static_cast<double>(physical_memory());
  check(needed <= there, program, "a model of ", need.parameters, " parameters takes ",
        static_cast<i64>(needed / megabyte), " MB of memory for this, or more; the machine has ",
        static_cast<i64>(there / megabyte), " MB");
}

}  // namespace orrery
