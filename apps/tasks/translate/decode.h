// Chapter 9. Translations of lines: in batches of similar lengths, and in the order of the lines.
//
// A batch is a rectangle, so a short sentence beside a long one costs as much as the long one. So the sentences are
// sorted by length, cut into batches, translated by beam search (nn/generate/beam_search.h), and put back in order.
//
// What a translator attends to while it translates a line, for the page of `decode --attention`.
//
// The translation is found by beam search. Then the whole pair goes through the model once, as in training, and the
// attention weights of this pass are kept.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/data/text_file.h"
#include "apps/tasks/translate/model.h"
#include "nn/generate/constraints.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery::translate {

struct DecodeOptions {
  i64 beam = 5;                   ///< 1 is greedy decoding
  i64 n_best = 1;                 ///< translations of a line, at most `beam`
  double length_penalty = 1;      ///< alpha: nn/generate/beam_search.h
  nn::Constraints constraints{};  ///< without prefixes: those are of the lines
  /// Source tokens of a batch, padding included; fewer with a wide beam (`rows_of_batch`). A longer sentence is a batch
  /// of its own.
  i64 batch_tokens = 1024;
  i64 max_length = most;  ///< tokens of a translation; also at most 50 more than its source has, as in the paper
  bool cut = false;       ///< a line that is too long for the model is cut off, not left out
  static constexpr i64 most = 1'000'000;
};

/// What became of a line.
enum class LineKind { translated, empty, not_utf8, with_nul, too_long };

/// One of the n best translations of a line.
struct RankedText {
  std::string text;
  double score;  ///< log-probability / length^alpha
};

struct Translation {
  LineKind kind = LineKind::translated;
  std::string text{};          ///< "" if the line was not translated
  double log_probability = 0;  ///< of all tokens
  i64 tokens = 0;              ///< with the end
  std::vector<i32> ids{};      ///< these tokens
  i64 unknown_letters = 0;     ///< of the line and its prefix: `Vocabulary::unknown_letters`
  bool is_cut = false;         ///< the line was cut off
  std::vector<RankedText> n_best{};
};

/// How many sentences of `length` tokens, the end included, make a batch: at least 1. The beam multiplies what the
/// decoder computes and keeps, so with a beam of more than 5 a batch has proportionally fewer sentences. The logits of
/// one step, one for each sentence, hypothesis and token of the vocabulary, are at most 2^25 numbers (128 MB), unless
/// those of a single sentence are already more.
i64 rows_of_batch(i64 length, i64 vocabulary, const DecodeOptions& options);

/// Receives, before the first batch and after each, the translations that can be written now because all lines before
/// them have theirs, and the number of lines that are done, in order or not.
using WhenReady = std::function<void(std::span<const Translation> ready, i64 done)>;
/// The translation of each line. If `stopped()` becomes true, it ends within a step of the search, and returns those
/// that were ready. Errors: those of `nn::beam_search`.
std::vector<Translation> translations(const Translator& translator, const std::vector<Line>& lines,
                                      const DecodeOptions& options, const std::function<bool()>& stopped,
                                      const WhenReady& when_ready = {});

/// An empty page for the attention of the translator's model; of the first, if several translate together.
AttentionPage attention_page(const Translator& translator);

/// Adds a line and its translation. `written` are the tokens that the model wrote, at least one: the last is the end
/// mark, unless the translation was cut off. Returns false if the page has no room for the pair. Error: no tokens.
bool add_attention(AttentionPage& page, const Translator& translator, const std::string& line,
                   std::span<const i32> written);

/// Adds --beam, --length-penalty, --max-length, --batch-tokens and constraints. `answer`: "translation".
void add_decode_options(CLI::App& command, DecodeOptions& options, const std::string& answer);

/// A command that writes a line for each line that it reads, in the words of its task.
struct DecodeCommand {
  std::string name{}, description{}, footer{};
  std::string program = "translate", answer = "translation", answers = "translations";
  std::string done = "translated", lines = "lines to translate";
  DecodeOptions decode{};
};
void add_decode_command(CLI::App& parent, int& exit_code, const DecodeCommand& command);

}  // namespace orrery::translate
