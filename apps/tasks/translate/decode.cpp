// Chapter 9. Lines to token ids, sorted into batches, and back to lines.
//
// Attention weights of a pair, with its tokens.
#include "apps/tasks/translate/decode.h"

#include <algorithm>

#include "apps/data/text_file.h"
#include "core/error.h"
#include "nn/generate/beam_search.h"

namespace orrery::translate {
namespace {

// The paper, section 6.1: "We set the maximum output length during inference to input length + 50".
constexpr i64 beyond_source = 50;

// A line that can be translated.
struct Sentence {
  size_t line;  // its number in the window
  std::vector<i32> ids, prefix;
  i64 length() const { return std::ssize(ids) + 1; }  // with its end
};

LineKind kind_of(const Line& line) {
  if (!line.is_whole) return LineKind::too_long;
  if (first_not_utf8(line.text) != line.text.npos) return LineKind::not_utf8;
  if (has_nul(line.text)) return LineKind::with_nul;
  return is_empty(line.text) ? LineKind::empty : LineKind::translated;
}

// The longest first: they need the most memory, which the others then use again.
std::vector<Sentence> sentences_by_length(const Translator& translator, const std::vector<Line>& lines, bool cut,
                                          std::vector<Translation>& results) {
  std::vector<Sentence> sentences;
  for (size_t i = 0; i < lines.size(); ++i) {
    LineKind& kind = results[i].kind;
    kind = kind_of(lines[i]);
    if (kind != LineKind::translated) continue;
    Sentence sentence{i, translator.vocabulary.ids(lines[i].text), translator.vocabulary.ids(lines[i].prefix)};
    results[i].is_cut = cut && sentence.length() > translator.most_tokens();
    if (results[i].is_cut) sentence.ids.resize(static_cast<size_t>(translator.most_tokens()) - 1);
    if (sentence.ids.empty()) {
      kind = LineKind::empty;  // also white space and invisible characters that are not ASCII's
    } else if (std::max(sentence.length(), std::ssize(sentence.prefix) + 1) > translator.most_tokens()) {
      kind = LineKind::too_long;
    } else {
      if (std::find(sentence.ids.begin(), sentence.ids.end(), unknown_id) != sentence.ids.end())
        results[i].unknown_letters = translator.vocabulary.unknown_letters(lines[i].text);
      if (!sentence.prefix.empty())
        results[i].unknown_letters += translator.vocabulary.unknown_letters(lines[i].prefix);
      sentences.push_back(std::move(sentence));
    }
  }
  std::stable_sort(sentences.begin(), sentences.end(),
                   [](const Sentence& a, const Sentence& b) { return a.length() > b.length(); });
  return sentences;
}

// The text of tokens, the last of which may be the end mark. Whatever the pieces are, a line stays a line.
std::string text_line(const Translator& translator, std::span<const i32> tokens) {
  std::string text = translator.vocabulary.text(tokens.first(tokens.size() - (tokens.back() == end_id ? 1 : 0)));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Whether the search was not stopped before its end.
bool translate_batch(const Translator& translator, std::span<const Sentence> batch, const DecodeOptions& options,
                     const std::function<bool()>& stopped, std::vector<Translation>& results) {
  std::vector<std::span<const i32>> rows;
  std::vector<i64> limits;
  nn::BeamOptions search{.beam = options.beam,
                         .n_best = options.n_best,
                         .length_penalty = options.length_penalty,
                         .constraints = options.constraints,
                         .bos = begin_id,
                         .eos = end_id,
                         .stopped = stopped};
  const auto has_prefix = [](const Sentence& sentence) { return !sentence.prefix.empty(); };
  const bool any_prefix = std::any_of(batch.begin(), batch.end(), has_prefix);
  for (const Sentence& sentence : batch) {
    rows.push_back(sentence.ids);
    const i64 prefix = std::ssize(sentence.prefix), asked = std::max(options.max_length, prefix + 1);
    limits.push_back(std::min({sentence.length() + beyond_source + prefix, asked, translator.most_tokens()}));
    if (any_prefix) search.constraints.prefixes.push_back(sentence.prefix);
  }
  const auto decoder = translator.decoder(source_tensor(rows), *std::max_element(limits.begin(), limits.end()));
  const std::vector<std::vector<nn::Hypothesis>> found = nn::n_best_search(*decoder, limits, search);
  if (found.empty()) return false;
  for (size_t i = 0; i < batch.size(); ++i) {
    const nn::Hypothesis& best = found[i].at(0);
    Translation& result = results[batch[i].line];
    result.text = text_line(translator, best.tokens);
    result.log_probability = best.log_probability;
    result.tokens = std::ssize(best.tokens);
    result.ids = best.tokens;
    if (options.n_best == 1) continue;
    for (const nn::Hypothesis& each : found[i])
      result.n_best.push_back({text_line(translator, each.tokens), each.score});
  }
  return true;
}

}  // namespace

i64 rows_of_batch(i64 length, i64 vocabulary, const DecodeOptions& options) {
  constexpr i64 usual_beam = 5, most_logits = i64{1} << 25;
  const i64 by_tokens = options.batch_tokens * usual_beam / (length * std::max(usual_beam, options.beam)),
            by_logits = most_logits / (options.beam * vocabulary);
  return std::max<i64>(1, std::min(by_tokens, by_logits));
}

std::vector<Translation> translations(const Translator& translator, const std::vector<Line>& lines,
                                      const DecodeOptions& options, const std::function<bool()>& stopped,
                                      const WhenReady& when_ready) {
  std::vector<Translation> results(lines.size());
  const std::vector<Sentence> sentences = sentences_by_length(translator, lines, options.cut, results);
  std::vector<bool> is_done(lines.size(), true);
  for (const Sentence& sentence : sentences) is_done[sentence.line] = false;
  size_t ready = 0;
  i64 done = std::ssize(lines) - std::ssize(sentences);
  const auto tell = [&] {
    const size_t before = ready;
    while (ready < lines.size() && is_done[ready]) ++ready;
    if (when_ready) when_ready(std::span(results).subspan(before, ready - before), done);
  };
  tell();
  for (size_t begin = 0; begin < sentences.size();) {
    const i64 fitting = rows_of_batch(sentences[begin].length(), translator.vocabulary.size(), options);
    const std::span<const Sentence> rest = std::span(sentences).subspan(begin);
    const std::span<const Sentence> batch = rest.first(std::min(static_cast<size_t>(fitting), rest.size()));
    if (!translate_batch(translator, batch, options, stopped, results)) break;
    for (const Sentence& sentence : batch) is_done[sentence.line] = true;
    done += std::ssize(batch);
    begin += batch.size();
    tell();
  }
  results.resize(ready);
  return results;
}

namespace {

std::vector<std::string> tokens_of(const Vocabulary& vocabulary, std::span<const i32> ids) {
  std::vector<std::string> tokens;
  for (const i32 id : ids) tokens.push_back(vocabulary.token(id));
  return tokens;
}

Tensor row_of(std::span<const i32> ids) {
  return Tensor::of<i32>({1, std::ssize(ids)}, std::vector<i32>(ids.begin(), ids.end()));
}

}  // namespace

AttentionPage attention_page(const Translator& translator) {
  TranslationModel& model = *translator.model;
  const std::string name =
      "A " + name_of(model.kind()) + " model of " + std::to_string(model.module().parameter_count()) + " parameters";
  const std::string alone =
                        ". Its weights while it wrote these translations, from one pass through the model for each.",
                    first = ", the first of " + std::to_string(translator.others.size() + 1) +
                            " that wrote these translations together. Its weights are from one pass for each.";
  return {"Attention of a translator", name + (translator.others.empty() ? alone : first)};
}

bool add_attention(AttentionPage& page, const Translator& translator, const std::string& line,
                   std::span<const i32> written) {
  check(!written.empty(), "translate", "there is no attention of a translation without tokens");
  const Vocabulary& vocabulary = translator.vocabulary;
  std::vector<i32> source = vocabulary.ids(line), input{begin_id};
  source.push_back(end_id);
  input.insert(input.end(), written.begin(), written.end() - 1);
  if (!page.has_room(translator.model->attention_weights(std::ssize(source), std::ssize(input)))) return false;
  const AttentionMaps maps = translator.model->attention(row_of(source), row_of(input));
  const bool ended = written.back() == end_id;
  page.add(line, vocabulary.text(written.first(written.size() - (ended ? 1 : 0))),
           shown_attentions(maps, tokens_of(vocabulary, source), tokens_of(vocabulary, input),
                            tokens_of(vocabulary, written)));
  return true;
}

}  // namespace orrery::translate
