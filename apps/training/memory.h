// Chapter 9. The memory that a training takes at the least: one that this machine cannot hold is refused at its start.
//
// The count is a lower bound, so that nothing is refused that would run: what is held for each parameter, and of what
// forward keeps for backward the largest parts alone. Of each token, each layer keeps q, k, v and the output of every
// attention, 4 d_model, and the inner activation of the feed-forward network, d_ff. Weights of attention are not
// counted, since long sequences are computed in tiles.
// Serves: apps/toy/toy.cpp
#pragma once

#include <string>

#include "nn/models/gpt_config.h"
#include "nn/models/transformer_config.h"

namespace orrery {

/// What is held at least, in numbers of f32.
struct MemoryNeed {
  i64 parameters = 0;
  i64 copies = 4;   ///< of each parameter: itself, its gradient, Adam's two moments
  double kept = 0;  ///< by forward for backward, or by a cache
};

/// What forward keeps at least of a batch of sources and targets of these lengths, or of texts of one length.
double kept_numbers(const nn::TransformerConfig& model, i64 batch, i64 source_length, i64 target_length);
double kept_numbers(const nn::GptConfig& model, i64 batch, i64 length);

/// The same in bytes.
double bytes_of(const MemoryNeed& need);
/// Error of `program`: this machine has less.
void check_memory(const std::string& program, const MemoryNeed& need);

}  // namespace orrery
