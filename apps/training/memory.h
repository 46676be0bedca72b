// Chapter 9. The least memory that a training and its texts need. A training that does not fit ends at its start.
//
// The count is a lower bound with two exceptions, so a training that could run is hardly ever refused: Muon remembers
// one number of each parameter in a hidden matrix, not two, and a training with fewer evaluations than `average_last`
// keeps fewer copies. It consists of the copies of each parameter and the largest tensors that forward keeps for
// backward. For each token, each layer keeps q, k, v and the output of self-attention, 4 d_model numbers, and the inner
// activation of the feed-forward network, d_ff numbers. Cross-attention keeps q and the output, 2 d_model, for each
// target token, and k and v, 2 d_model, for each source token. An attention of n queries and m keys keeps h n m
// weights, unless m is so large that it is computed in tiles (autograd/ops/fused/attention/tiled_attention.cpp). A head
// that is not fused with the loss keeps its logits: for each token as many as the vocabulary has.
#pragma once

#include <string>
#include <vector>

#include "nn/models/gpt.h"
#include "nn/models/transformer.h"

namespace orrery {

/// The least that a training holds, in f32 numbers.
struct MemoryNeed {
  i64 parameters = 0;
  i64 copies = 4;   ///< for each parameter: itself, its gradient, Adam's two moments
  double kept = 0;  ///< numbers kept by forward for backward, or by a cache
};

/// Whether the loss is computed together with the logits (`linear_cross_entropy`), which then never exist as a whole.
enum class LossHead { fused, composed };
/// The least that forward keeps for a batch of sources and targets of these lengths, or of texts of one length.
double kept_numbers(const nn::TransformerConfig& model, i64 batch, i64 source_length, i64 target_length, LossHead head);
double kept_numbers(const nn::GptConfig& model, i64 batch, i64 length);

/// The same in bytes.
double bytes_of(const MemoryNeed& need);
/// Error of `program`: this machine has less memory than that, or `limit_memory` allows less.
void check_memory(const std::string& program, const MemoryNeed& need);
/// Error of `program`: the texts in these files, which it keeps in memory, need more than this machine has or than
/// `limit_memory` allows: twice their size, for each line as it is in the file and in one spelling, and later as
/// tokens. Files that are not there count nothing: reading them is an error.
void check_memory_for_texts(const std::string& program, const std::vector<std::string>& files);

}  // namespace orrery
