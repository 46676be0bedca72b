// Chapter 9. Texts to ids and labels to numbers, batches of these, and what a model says of them.
#include "apps/tasks/text_encoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "apps/program/options.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/softmax.h"
#include "core/files/json.h"
#include "core/files/shards.h"
#include "core/tensor_ops.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

// Both kinds of tokens are JSON that says its kind.
bool are_word_pieces(const std::string& json) {
  constexpr JsonLimits limits{.bytes = size_t{1} << 27, .values = 2 * largest_vocabulary + 100};
  const Json object = parse_json_object(json, "vocabulary", limits);
  std::string kind;
  nn::config_json::Reader("vocabulary", object)("kind", kind);
  return kind == "WordPiece";
}

}  // namespace

i64 TextTokens::size() const {
  return std::visit([](const auto& pieces) { return pieces.size(); }, pieces_);
}

// The id of a token that both kinds have.
i32 TextTokens::special(i32 (WordPiece::*of_words)() const, i32 of_pieces) const {
  const WordPiece* const words = word_pieces();
  return words ? (words->*of_words)() : of_pieces;
}

bool TextTokens::is_special(i32 id) const {
  if (!word_pieces()) return id < first_piece_id;
  return id == cls() || id == sep() || id == pad() || id == unknown() || id == mask();
}

bool TextTokens::begins_word(i32 id) const {
  const std::string& piece = token(id);
  if (word_pieces()) return !piece.starts_with("##");
  // U+2581, which stands for a space, is E2 96 81; letters of Chinese and Japanese come after it.
  return static_cast<unsigned char>(piece[0]) >= 0xE2;
}

const std::string& TextTokens::token(i32 id) const {
  return std::visit([id](const auto& pieces) -> const std::string& { return pieces.token(id); }, pieces_);
}

std::string TextTokens::text(std::span<const i32> ids) const {
  return std::visit([ids](const auto& pieces) { return pieces.text(ids); }, pieces_);
}

std::vector<i32> TextTokens::ids(std::string_view text) const {
  return std::visit([&](const auto& pieces) { return pieces.ids(text); }, pieces_);
}

Metadata TextTokens::metadata() const {
  const std::string json = std::visit([](const auto& pieces) { return pieces.to_json(); }, pieces_);
  return {{std::string(vocabulary_key), json}};
}

std::optional<TextTokens> TextTokens::in(const Metadata& metadata, const std::string& path) {
  return within("load " + path, [&]() -> std::optional<TextTokens> {
    const auto found = metadata.find(std::string(vocabulary_key));
    if (found == metadata.end()) return std::nullopt;
    if (are_word_pieces(found->second)) return TextTokens(WordPiece::from_json(found->second));
    return TextTokens(Vocabulary::from_json(found->second));
  });
}

TextTokens TextTokens::of_model(const Metadata& metadata, const std::string& path) {
  if (const std::optional<TextTokens> own = in(metadata, path)) return *own;
  return TextTokens(WordPiece::of_file(std::filesystem::path(model_file(path)).replace_filename("vocab.txt").string()));
}

void TextTokens::check_fit(const nn::BertConfig& config, const std::string& path) const {
  check(size() <= config.vocab_size, "load " + path, "the vocabulary has ", size(), " tokens, the model only ",
        config.vocab_size);
}

EncodedText TextReader::operator()(const LabelledText& text) const {
  EncodedText encoded{.ids = {tokens.cls()}, .words = std::ssize(text.words)};
  const size_t most = static_cast<size_t>(most_tokens) - 1;  // before [SEP]
  const bool in_parts = config.head == nn::BertHead::sentence && text.words.size() > 1;
  if (in_parts) encoded.words = 1;
  i64 part = 0;
  for (const std::string& word : text.words) {
    if (config.sentence_sums && part == config.type_vocab_size) {
      encoded.is_cut = true;
      break;
    }
    std::vector<i32> pieces = tokens.ids(word);
    if (pieces.empty() && config.head == nn::BertHead::token) pieces = {tokens.unknown()};
    const size_t place = encoded.ids.size(), kept = std::min(pieces.size(), most - place);
    if (config.head == nn::BertHead::sentence)
      encoded.places = {0};
    else if (kept > 0)
      encoded.places.push_back(static_cast<i32>(place));
    encoded.is_cut = encoded.is_cut || kept < pieces.size();
    encoded.ids.insert(encoded.ids.end(), pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(kept));
    if (!in_parts) continue;
    if (part == 0 && encoded.ids.size() < most) encoded.ids.push_back(tokens.sep());
    encoded.segments.resize(encoded.ids.size(), static_cast<i32>(std::min(part, config.type_vocab_size - 1)));
    part += encoded.ids.size() > place || part == 0;
  }
  encoded.ids.push_back(tokens.sep());
  if (in_parts) encoded.segments.push_back(encoded.segments.back());
  for (size_t i = 0; i < text.labels.size(); ++i) {
    const auto found = std::find(config.labels.begin(), config.labels.end(), text.labels[i]);
    check(found != config.labels.end(), "labels", text.place, text.lines.empty() ? "" : std::to_string(text.lines[i]),
          ": ", printable(text.labels[i]), " is none of the model's, ", some_of(config.labels, 5));
    encoded.right.push_back(static_cast<i32>(found - config.labels.begin()));
  }
  return encoded;
}

EncodedTexts TextReader::operator()(const std::vector<LabelledText>& texts) const {
  EncodedTexts encoded;
  for (const LabelledText& text : texts) encoded.push_back((*this)(text));
  return encoded;
}

translate::BatchesByLength batches_of(const EncodedTexts& texts, i64 rows, const Rng& numbers, i64 tokens) {
  std::vector<translate::BatchesByLength::Lengths> lengths;
  for (const EncodedText& text : texts) lengths.emplace_back(std::ssize(text.ids), 0);
  const auto fits = [=](const translate::BatchShape& shape) { return shape.rows <= rows && shape.tokens() <= tokens; };
  return {std::move(lengths), fits, numbers};
}

namespace {

Tensor numbers_of(const EncodedTexts& texts, std::span<const i64> items, std::vector<i32> EncodedText::*numbers,
                  i32 padding) {
  i64 S = 0;
  for (const i64 item : items) S = std::max(S, std::ssize(texts[static_cast<size_t>(item)].ids));
  Tensor all = full({std::ssize(items), S}, padding);
  i32* row = all.write<i32>();
  for (const i64 item : items) {
    const std::vector<i32>& each = texts[static_cast<size_t>(item)].*numbers;
    std::copy(each.begin(), each.end(), row);
    row += S;
  }
  return all;
}

}  // namespace

Tensor ids_of(const EncodedTexts& texts, std::span<const i64> items, i32 pad) {
  return numbers_of(texts, items, &EncodedText::ids, pad);
}

Tensor segments_of(const EncodedTexts& texts, std::span<const i64> items) {
  const bool any = std::any_of(items.begin(), items.end(),
                               [&](i64 item) { return !texts[static_cast<size_t>(item)].segments.empty(); });
  return any ? numbers_of(texts, items, &EncodedText::segments, 0) : Tensor();
}

JudgedTexts judged(const nn::Bert& model, const EncodedTexts& texts, Ranks& ranks) {
  constexpr i64 rows = 32;
  const NoGradient nothing_recorded;
  const translate::BatchesByLength batches = batches_of(texts, rows, Rng(0));
  const auto draw = [&](i64 i) { return batches.sorted_batch(i); };
  const auto judge = [&](std::span<const i64> items) {  // a label and its probability for each word that has a place
    Ranks::Numbers said;
    nn::Pass pass = nn::Pass::inference();
    const Variable hidden = model.hidden(ids_of(texts, items, model.config.pad_id), segments_of(texts, items), pass);
    const Tensor p = softmax(model.logits(hidden, pass)).value();
    const i64 labels = p.size(-1), of_each = p.count() / p.size(0);
    const float* of_text = p.data<float>();
    for (const i64 item : items) {
      for (const i64 place : texts[static_cast<size_t>(item)].places) {
        const float *first = of_text + place * labels, *best = std::max_element(first, first + labels);
        said.push_back(static_cast<double>(best - first));
        said.push_back(*best);
      }
      of_text += of_each;
    }
    return said;
  };
  const std::vector<Ranks::Numbers> all = ranks.share_out(batches.in_epoch(), draw, judge);
  JudgedTexts result(texts.size());
  for (i64 i = 0; i < batches.in_epoch(); ++i) {
    const double* next = all[static_cast<size_t>(i)].data();
    for (const i64 item : batches.sorted_batch(i)) {
      const EncodedText& text = texts[static_cast<size_t>(item)];
      JudgedText& said = result[static_cast<size_t>(item)];
      said.right = text.right;
      said.answers.resize(static_cast<size_t>(text.words));
      for (size_t word = 0; word < text.places.size(); ++word, next += 2)
        said.answers[word] = {static_cast<i32>(next[0]), next[1]};
    }
  }
  return result;
}

namespace {

// So many tokens of a text from a random word on, or all that it has from its first one. The last word may be cut off:
// if only whole words were taken, a text that is shorter than others would be one that does not follow.
std::span<const i32> random_part(const EncodedText& text, i64 most, Rng& numbers) {
  const auto from = text.places.begin();
  const i64 size = std::ssize(text.ids);
  const auto last = std::upper_bound(from, text.places.end(), static_cast<i32>(std::max<i64>(0, size - most)));
  const i64 begin = from[numbers.integer(0, last - from)];
  return std::span(text.ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(most, size - begin)));
}

// A text of another document, which has so many tokens if one of a few does.
const EncodedText& other_text(const EncodedTexts& texts, i64 item, i64 tokens, Rng& numbers) {
  const auto [first, end] = std::equal_range(texts.begin(), texts.end(), texts[static_cast<size_t>(item)],
                                             [](const auto& a, const auto& b) { return a.document < b.document; });
  i64 begin = first - texts.begin(), count = end - first, number = 0;
  if (count == std::ssize(texts)) std::tie(begin, count) = std::pair(item, 1);
  for (int tries = 0; tries < 4; ++tries) {
    number = numbers.integer(0, std::ssize(texts) - count);
    if (number >= begin) number += count;
    if (std::ssize(texts[static_cast<size_t>(number)].ids) >= tokens) break;
  }
  return texts[static_cast<size_t>(number)];
}

// Hides words of a row, [CLS] A [SEP] B [SEP] with a [SEP] before `second`; at least one, and returns how many.
i64 hide_words(std::span<i32> ids, std::span<i32> labels, size_t second, const TextTokens& tokens, Rng& numbers) {
  constexpr double chosen = 0.15, masked = 0.8, random = 0.1;
  std::vector<size_t> places;
  for (size_t i = 1; i + 1 < ids.size(); ++i)
    if (i + 1 != second) places.push_back(i);  // by its place: "[SEP]" may stand in a text, too
  const std::vector<i64> order = numbers.permutation(std::ssize(places));
  const i64 count = std::max<i64>(1, std::llround(chosen * static_cast<double>(places.size())));
  for (i64 k = 0; k < count; ++k) {
    const size_t i = places[static_cast<size_t>(order[static_cast<size_t>(k)])];
    labels[i] = ids[i];
    const double u = numbers.uniform();
    if (u < masked) ids[i] = tokens.mask();
    if (u < masked || u >= masked + random) continue;
    do ids[i] = static_cast<i32>(numbers.integer(0, tokens.size()));
    while (tokens.is_special(ids[i]));
  }
  return count;
}

}  // namespace

void add_parts(const EncodedText& text, i64 most, EncodedTexts& parts, i64& few) {
  EncodedText part{.document = text.document};
  const auto end = [&] {
    if (part.places.size() > 1) parts.push_back(part);
    few += part.places.size() < 2;
    part = {.document = text.document};
  };
  for (size_t k = 0; k < text.places.size(); ++k) {
    const auto next = k + 1 < text.places.size() ? text.ids.begin() + text.places[k + 1] : text.ids.end();
    for (auto from = text.ids.begin() + text.places[k]; from != next;) {
      const auto to = from + std::min<i64>(next - from, most);
      if (std::ssize(part.ids) + (to - from) > most) end();
      part.places.push_back(static_cast<i32>(part.ids.size()));
      part.ids.insert(part.ids.end(), from, to);
      from = to;
    }
  }
  end();
}

EncodedTexts parts_of(const std::vector<LabelledText>& texts, const TextTokens& tokens, i64 most, i64& few) {
  EncodedTexts parts;
  for (const LabelledText& text : texts) {
    EncodedText whole{.document = &text - texts.data()};
    for (const std::string& line : text.words) {
      const std::vector<i32> ids = tokens.ids(line);
      for (size_t i = 0; i < ids.size(); ++i)
        if (i == 0 || tokens.begins_word(ids[i])) whole.places.push_back(static_cast<i32>(whole.ids.size() + i));
      whole.ids.insert(whole.ids.end(), ids.begin(), ids.end());
    }
    add_parts(whole, most, parts, few);
  }
  return parts;
}

PretrainingBatch pretraining_batch(const TextTokens& tokens, const EncodedTexts& texts, std::span<const i64> items,
                                   Rng& numbers) {
  std::vector<std::vector<i32>> rows;
  std::vector<i64> of_first;  // how many tokens of a row are of segment 0
  std::vector<i32> next;
  i64 S = 0;
  for (const i64 item : items) {
    const EncodedText& text = texts[static_cast<size_t>(item)];
    const i32 cut = text.places[static_cast<size_t>(numbers.integer(1, std::ssize(text.places)))];
    std::vector<i32>& row = rows.emplace_back(1, tokens.cls());
    row.insert(row.end(), text.ids.begin(), text.ids.begin() + cut);
    row.push_back(tokens.sep());
    of_first.push_back(std::ssize(row));
    std::span<const i32> second = std::span(text.ids).subspan(static_cast<size_t>(cut));
    next.push_back(texts.size() > 1 && numbers.uniform() < 0.5);
    if (next.back() == 1) {
      const i64 size = std::ssize(second);
      second = random_part(other_text(texts, item, size, numbers), size, numbers);
    }
    row.insert(row.end(), second.begin(), second.end());
    row.push_back(tokens.sep());
    S = std::max(S, std::ssize(row));
  }
  const Shape shape{std::ssize(rows), S};
  PretrainingBatch batch{full(shape, tokens.pad()), full(shape, 0), full(shape, CrossEntropyOptions{}.ignore_index),
                         Tensor::of<i32>({shape[0]}, next)};
  i32 *ids = batch.ids.write<i32>(), *segment = batch.segments.write<i32>(), *word = batch.words.write<i32>();
  for (size_t i = 0; i < rows.size(); ++i, ids += S, segment += S, word += S) {
    std::copy(rows[i].begin(), rows[i].end(), ids);
    std::fill(segment + of_first[i], segment + rows[i].size(), 1);
    const size_t size = rows[i].size();
    batch.hidden += hide_words({ids, size}, {word, size}, static_cast<size_t>(of_first[i]), tokens, numbers);
  }
  return batch;
}

}  // namespace orrery
