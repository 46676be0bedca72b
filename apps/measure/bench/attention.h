// Chapter 9. `orrery bench attention`: time and memory of attention as sequences become long.
//
// Measures two things at each length: one causal self-attention of 4 heads with d_k = d_v = 64, forward and backward,
// without the products around it; and a whole training step of the configuration `long`, a GPT of two layers with such
// attentions. `orrery bench masks`: what masks cost such an attention.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// Attention over T positions: seconds of the fastest run, and the most bytes that exist at once, with inputs and
/// gradients.
struct AttentionFigures {
  i64 T = 0;
  double forward = 0, backward = 0;  ///< seconds
  i64 peak_bytes = 0;
  double step = 0;  ///< seconds of a training step
  i64 step_peak_bytes = 0;
  /// Operations of the products in both passes: 7 products of 2 d for each pair that a causal mask allows, of which
  /// there are T (T + 1) / 2. (The scores are computed twice.)
  double flop() const;
};

/// The lengths to measure: 1,024, 2,048, ..., 16,384.
std::vector<i64> attention_lengths();
AttentionFigures measure_attention(i64 T);
/// Measures only the training step: sets `step` and `step_peak_bytes`.
void measure_long_step(AttentionFigures& figures);
void print_attention(std::ostream& out, const std::vector<AttentionFigures>& rows);

/// Self-attention of T positions under a mask: seconds of forward and backward, with the mask and without.
struct MaskCost {
  static constexpr double allowed = 1.3;
  i64 T = 0;
  std::string mask{};
  double seconds = 0, unmasked = 0;
  double ratio() const { return seconds / unmasked; }
  bool kept() const { return ratio() <= allowed; }
};

/// The masks of `orrery bench masks`, which take turns: the fastest of at least three rounds, and of as many as fit
/// into `budget` seconds.
std::vector<MaskCost> measure_masks(i64 T, double budget);
void print_masks(std::ostream& out, const std::vector<MaskCost>& rows);

}  // namespace orrery
