// Chapter 9. Translations of lines: in batches of similar lengths, and in the order of the lines.
//
// A batch is a rectangle, so a short sentence beside a long one costs as much as the long one. So the sentences are
// sorted by length, cut into batches, translated by beam search (nn/generate/beam_search.h), and put back in order.
// Serves: nn/models/transformer.h
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/translate/line_reader.h"
#include "apps/translate/saved.h"

namespace orrery::translate {

struct DecodeOptions {
  i64 beam = 5;               ///< 1 is greedy decoding
  double length_penalty = 1;  ///< alpha: nn/generate/beam_search.h
  i64 batch_tokens = 1024;    ///< source tokens of a batch, padding included; a longer sentence is a batch of its own
  i64 max_length = most;      ///< tokens of a translation; also at most 50 more than its source has, as in the paper
  static constexpr i64 most = 1'000'000;
};

/// What became of a line.
enum class LineKind { translated, empty, not_text, too_long };

struct Translation {
  LineKind kind = LineKind::translated;
  std::string text{};          ///< "" if the line was not translated
  double log_probability = 0;  ///< of all tokens
  i64 tokens = 0;              ///< with the end
  std::vector<i32> ids{};      ///< these tokens
};

/// The translation of each line. Returns none if `stopped()` becomes true between batches. Errors: those of
/// `nn::beam_search`.
std::vector<Translation> translations(const Translator& translator, const std::vector<Line>& lines,
                                      const DecodeOptions& options, const std::function<bool()>& stopped);

}  // namespace orrery::translate
