// Chapter 9. Lines to token ids, sorted into batches, and back to lines.
//
// Serves: nn/models/transformer.h
#include "apps/translate/decode.h"

#include <algorithm>

#include "nn/generate/beam_search.h"

namespace orrery::translate {
namespace {

// The paper, section 6.1: "We set the maximum output length during inference to input length + 50".
constexpr i64 beyond_source = 50;

// A line that can be translated.
struct Sentence {
  size_t line;  // its number in the window
  std::vector<i32> ids;
  i64 length() const { return std::ssize(ids) + 1; }  // with its end
};

LineKind kind_of(const Line& line) {
  if (!line.is_whole) return LineKind::too_long;
  if (!is_text(line.text)) return LineKind::not_text;
  return is_empty(line.text) ? LineKind::empty : LineKind::translated;
}

// The longest first: they need the most memory, which the others then use again.
std::vector<Sentence> sentences_by_length(const Translator& translator, const std::vector<Line>& lines,
                                          std::vector<Translation>& results) {
  std::vector<Sentence> sentences;
  for (size_t i = 0; i < lines.size(); ++i) {
    LineKind& kind = results[i].kind;
    kind = kind_of(lines[i]);
    if (kind != LineKind::translated) continue;
    Sentence sentence{i, translator.vocabulary.ids(lines[i].text)};
    if (sentence.ids.empty()) {
      kind = LineKind::empty;
    } else if (sentence.length() > translator.model->most_tokens()) {
      kind = LineKind::too_long;
    } else {
      sentences.push_back(std::move(sentence));
    }
  }
  std::stable_sort(sentences.begin(), sentences.end(),
                   [](const Sentence& a, const Sentence& b) { return a.length() > b.length(); });
  return sentences;
}

void translate_batch(const Translator& translator, std::span<const Sentence> batch, const DecodeOptions& options,
                     std::vector<Translation>& results) {
  std::vector<std::span<const i32>> rows;
  std::vector<i64> limits;
  for (const Sentence& sentence : batch) {
    rows.push_back(sentence.ids);
    limits.push_back(
        std::min({sentence.length() + beyond_source, options.max_length, translator.model->most_tokens()}));
  }
  const auto decoder = translator.model->decoder(source_tensor(rows), limits[0], options.beam);
  const std::vector<nn::Hypothesis> found =
      nn::beam_search(*decoder, limits,
                      {.beam = options.beam, .length_penalty = options.length_penalty, .bos = begin_id, .eos = end_id});
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<i32>& tokens = found[i].tokens;
    const bool ended = tokens.back() == end_id;
    Translation& result = results[batch[i].line];
    result.text = translator.vocabulary.text(std::span(tokens).first(tokens.size() - (ended ? 1 : 0)));
    std::replace(result.text.begin(), result.text.end(), '\n', ' ');  // whatever the pieces are, a line stays a line
    result.log_probability = found[i].log_probability;
    result.tokens = std::ssize(tokens);
    result.ids = tokens;
  }
}

}  // namespace

std::vector<Translation> translations(const Translator& translator, const std::vector<Line>& lines,
                                      const DecodeOptions& options, const std::function<bool()>& stopped) {
  std::vector<Translation> results(lines.size());
  const std::vector<Sentence> sentences = sentences_by_length(translator, lines, results);
  for (size_t begin = 0; begin < sentences.size();) {
    if (stopped()) return {};
    const auto fitting = static_cast<size_t>(std::max<i64>(1, options.batch_tokens / sentences[begin].length()));
    const size_t count = std::min(fitting, sentences.size() - begin);
    translate_batch(translator, std::span(sentences).subspan(begin, count), options, results);
    begin += count;
  }
  return results;
}

}  // namespace orrery::translate
