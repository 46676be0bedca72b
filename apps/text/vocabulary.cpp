// Chapter 9. Training and using SentencePiece, and looking up tokens of segmented text.
//
// A model of SentencePiece may contain tables that its library follows without checking them. So no such model is ever
// read from a file. A vocabulary is stored as a list of pieces and scores, and the model is built from that list, after
// training too.
// Serves: nn/models/transformer.h
#include "apps/text/vocabulary.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "apps/text/characters.h"
#include "apps/text/text_file.h"
#include "core/error.h"
#include "core/utf8.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

constexpr std::string_view vocabulary_operation = "vocabulary", kind_of_sentencepiece = "sentencepiece",
                           kind_of_exact = "sentencepiece-exact", kind_of_segmented = "segmented", word_goes_on = "@@";

// U+2581, which stands for a space in SentencePiece's pieces.
constexpr std::string_view space_mark = "\xE2\x96\x81";

// In the order of their ids.
const std::array<std::string, first_piece_id> token_names{"<pad>", "<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "[MASK]"};

constexpr size_t bytes_in_all = 256;

// The token that stands for one byte, as SentencePiece writes it: "<0x0A>".
std::string byte_token(size_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
}

// How many tokens stand before the first piece.
size_t tokens_before_pieces(bool exact) { return first_piece_id + (exact ? bytes_in_all : 0); }

void check_line_utf8(std::string_view line) {
  const size_t wrong = first_not_utf8(line);
  check(wrong == line.npos, vocabulary_operation, "the text is not UTF-8: byte ", wrong + 1,
        " of a line begins no character");
}

// Calls each(token) for what stands between the whitespace of a line: ASCII's, as for subword-nmt.
template <class Each>
void for_each_token(std::string_view line, const Each& each) {
  for (size_t begin = line.find_first_not_of(ascii_space); begin != line.npos;) {
    const size_t end = std::min(line.find_first_of(ascii_space, begin), line.size());
    each(line.substr(begin, end - begin));
    begin = line.find_first_not_of(ascii_space, end);
  }
}

// Fields of a message in the format of Protocol Buffers, in which SentencePiece's models are written.
class Message {
 public:
  void number(u64 field, u64 value) {
    varint(field << 3);
    varint(value);
  }
  void text(u64 field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void real(u64 field, float value) {
    varint(field << 3 | 5);
    for (u32 bits = std::bit_cast<u32>(value), i = 0; i < 4; ++i, bits >>= 8) bytes_ += static_cast<char>(bits & 0xFF);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(u64 value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// A unigram model of SentencePiece: the field numbers are those of its sentencepiece_model.proto. An `exact` one keeps
// every space, and makes bytes of characters without a piece.
std::string sentencepiece_model(const std::vector<std::string>& tokens, const std::vector<float>& scores, bool exact) {
  constexpr u64 normal = 1, unknown = 2, control = 3, byte = 6, unigram = 1;
  Message model;
  for (size_t id = 0; id < tokens.size(); ++id) {
    u64 kind = control;
    if (id >= first_piece_id) kind = byte;
    if (id >= tokens_before_pieces(exact)) kind = normal;
    if (id == unknown_id) kind = unknown;
    Message piece;
    piece.text(1, tokens[id]);
    piece.real(2, scores[id]);
    piece.number(3, kind);
    model.text(1, piece.bytes());
  }
  Message trainer;
  trainer.number(3, unigram);
  trainer.number(35, exact);  // byte_fallback
  trainer.number(40, unknown_id);
  trainer.number(41, begin_id);
  trainer.number(42, end_id);
  trainer.number(43, pad_id);
  model.text(2, trainer.bytes());
  Message normalizer;
  normalizer.text(1, "identity");
  normalizer.number(3, !exact);  // add_dummy_prefix
  normalizer.number(4, !exact);  // remove_extra_whitespaces
  model.text(3, normalizer.bytes());
  return model.bytes();
}

void check_status(const sentencepiece::util::Status& status) {
  check(status.ok(), vocabulary_operation, status.message());
}

class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  // Every `stride`-th line; SentencePiece asks for each as a string.
  LineIterator(const std::vector<std::string_view>& lines, size_t stride) : lines_(lines), stride_(stride) { take(); }
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override {
    at_ += stride_;
    take();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void take() {
    if (!done()) line_ = lines_[at_];
  }

  const std::vector<std::string_view>& lines_;
  const size_t stride_;
  size_t at_ = 0;
  std::string line_;
};

i64 different_characters(const std::vector<std::string_view>& lines) {
  std::set<size_t> codes;
  for (const std::string_view line : lines)
    for_each_character(line, [&](size_t code, size_t, size_t) { codes.insert(code); });
  return static_cast<i64>(codes.size());
}

void check_lines(const std::vector<std::string_view>& lines) {
  bool any = false;
  for (const std::string_view line : lines) {
    check_line_utf8(line);
    for_each_token(line, [&](std::string_view) { any = true; });
  }
  check(any, vocabulary_operation, "there is no text to learn from");
}

// All pieces must be different, and none may be empty.
void check_tokens(const std::vector<std::string>& tokens) {
  std::set<std::string_view> known;
  check(static_cast<i64>(tokens.size()) <= largest_vocabulary, vocabulary_operation, "has more than ",
        largest_vocabulary, " tokens");
  check(!tokens.empty(), vocabulary_operation, "has no tokens");
  for (const std::string& token : tokens) {
    check_line_utf8(token);
    check(!token.empty() && token.find('\0') == token.npos, vocabulary_operation,
          "has a token that is empty or has a zero byte");
    check(known.insert(token).second, vocabulary_operation, "has the token ", printable(token), " twice");
  }
}

std::vector<std::string> with_names(const std::vector<std::string>& pieces, bool exact) {
  std::vector<std::string> tokens(token_names.begin(), token_names.end());
  if (exact)
    for (size_t byte = 0; byte < bytes_in_all; ++byte) tokens.push_back(byte_token(byte));
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  return tokens;
}

}  // namespace

struct Vocabulary::Contents {
  bool segmented = false, exact = false;
  std::vector<std::string> tokens;                        // by id, the named ones included
  std::vector<float> scores;                              // of SentencePiece's pieces; 0 for named ids
  sentencepiece::SentencePieceProcessor processor;        // of SentencePiece's pieces
  std::unordered_map<std::string_view, i32> segment_ids;  // of the tokens of segmented text

  explicit Contents(const std::vector<std::string>& pieces) : segmented(true), tokens(with_names(pieces, false)) {
    check_tokens(pieces);
    check(static_cast<i64>(tokens.size()) <= largest_vocabulary, vocabulary_operation, "has more than ",
          largest_vocabulary, " tokens");
    for (size_t id = first_piece_id; id < tokens.size(); ++id) segment_ids[tokens[id]] = static_cast<i32>(id);
  }
  Contents(const std::vector<std::string>& pieces, const std::vector<float>& piece_scores, bool is_exact)
      : exact(is_exact), tokens(with_names(pieces, exact)), scores(tokens_before_pieces(exact), 0.0F) {
    check(pieces.size() == piece_scores.size(), vocabulary_operation, "has ", pieces.size(), " pieces and ",
          piece_scores.size(), " scores");
    check_tokens(tokens);
    for (const float score : piece_scores)
      check(std::abs(score) <= 1e6F, vocabulary_operation, "has a score out of range");
    check(!exact || std::find(pieces.begin(), pieces.end(), space_mark) != pieces.end(), vocabulary_operation,
          "has no token for a space");
    scores.insert(scores.end(), piece_scores.begin(), piece_scores.end());
    check_status(processor.LoadFromSerializedProto(sentencepiece_model(tokens, scores, exact)));
  }

  void add_pieces(std::string_view text, std::vector<i32>& ids) const {
    std::vector<int> found;
    check_status(processor.Encode(absl::string_view(text.data(), text.size()), &found));
    ids.insert(ids.end(), found.begin(), found.end());
  }

  // SentencePiece takes U+2581 for a space, and knows no pieces of several lines: these become bytes here.
  void add_exact(std::string_view text, std::vector<i32>& ids) const {
    while (!text.empty()) {
      const size_t mark = std::min(text.find(space_mark), text.size());
      const size_t end = std::min(mark, text.find_first_of(std::string_view("\n\0", 2)));
      if (end > 0) add_pieces(text.substr(0, end), ids);
      text.remove_prefix(end);
      const size_t as_bytes = std::min(text.size(), end == mark ? space_mark.size() : 1);
      for (const char c : text.substr(0, as_bytes)) ids.push_back(first_piece_id + static_cast<unsigned char>(c));
      text.remove_prefix(as_bytes);
    }
  }

  std::string joined_segments(std::span<const i32> ids) const {
    std::string line;
    bool goes_on = true;  // the first token follows no space
    for (const i32 id : ids) {
      std::string_view token = tokens[static_cast<size_t>(id)];
      if (!goes_on) line += ' ';
      goes_on = token.ends_with(word_goes_on);
      if (goes_on) token.remove_suffix(word_goes_on.size());
      line += token;
    }
    return line;
  }
};

Vocabulary Vocabulary::of_text(const std::vector<std::string_view>& lines, i64 size) {
  return trained(lines, size, false);
}

Vocabulary Vocabulary::of_running_text(const std::vector<std::string_view>& lines, i64 size) {
  return trained(lines, size, true);
}

namespace {

using TrainerOptions = std::unordered_map<std::string, std::string>;  // of SentencePiece

// To learn `pieces` pieces from lines of at most `longest_line` bytes. `whole`: every character gets a piece.
TrainerOptions trainer_options(i64 pieces, size_t longest_line, bool whole, bool exact) {
  const std::string unify_spaces = exact ? "false" : "true";
  return {{"model_type", "unigram"},
          {"vocab_size", std::to_string(pieces)},
          {"hard_vocab_limit", "false"},
          {"max_sentence_length", std::to_string(longest_line)},
          {"character_coverage", whole ? "1.0" : "0.9995"},
          {"normalization_rule_name", "identity"},
          {"add_dummy_prefix", unify_spaces},
          {"remove_extra_whitespaces", unify_spaces},
          {"pad_id", std::to_string(pad_id)},
          {"unk_id", std::to_string(unknown_id)},
          {"bos_id", std::to_string(begin_id)},
          {"eos_id", std::to_string(end_id)},
          {"control_symbols", "[CLS],[SEP],[MASK]"},
          {"num_threads", "4"},   // sums depend on their number
          {"minloglevel", "4"}};  // nothing is printed
}

}  // namespace

Vocabulary Vocabulary::trained(const std::vector<std::string_view>& lines, i64 size, bool exact) {
  check_lines(lines);
  // An exact vocabulary has a piece for a space, whether the text has spaces or not.
  const i64 before = static_cast<i64>(tokens_before_pieces(exact)), learned = size - before - (exact ? 1 : 0);
  check(size > before && size <= largest_vocabulary, vocabulary_operation, "a vocabulary has from ", before + 1, " to ",
        largest_vocabulary, " tokens, not ", size);
  // An alphabet is learned whole if it takes at most a quarter of the tokens. Of a script with thousands of characters,
  // the rarest are left out. A very large text is sampled, because training keeps all of it in memory several times.
  constexpr size_t most_lines = 2'000'000;
  const i64 characters = different_characters(lines);
  const bool whole = 4 * characters <= learned + first_piece_id;
  LineIterator sample(lines, (lines.size() + most_lines - 1) / most_lines);
  std::string model;
  size_t longest = 10;  // the least that SentencePiece takes
  for (const std::string_view line : lines) longest = std::max(longest, line.size());
  const sentencepiece::util::Status status = sentencepiece::SentencePieceTrainer::Train(
      trainer_options(learned + first_piece_id, longest, whole, exact), &sample, &model);
  check(status.ok() || characters + before < size, vocabulary_operation, "a vocabulary of ", size,
        " tokens does not hold the ", characters, " different characters of the text",
        exact ? ", besides the 256 bytes" : "");
  check(status.ok(), vocabulary_operation, "SentencePiece cannot learn from this text. It says: ", status.message());
  sentencepiece::SentencePieceProcessor processor;
  check_status(processor.LoadFromSerializedProto(model));
  std::vector<std::string> pieces;
  std::vector<float> scores;
  for (int id = first_piece_id; id < processor.GetPieceSize(); ++id) {
    pieces.push_back(processor.IdToPiece(id));
    scores.push_back(processor.GetScore(id));
  }
  if (exact && std::find(pieces.begin(), pieces.end(), space_mark) == pieces.end()) {
    pieces.emplace_back(space_mark);
    scores.push_back(scores.empty() ? 0 : *std::min_element(scores.begin(), scores.end()));
  }
  return Vocabulary(std::make_shared<const Contents>(pieces, scores, exact));
}

Vocabulary Vocabulary::of_segmented(const std::vector<std::string_view>& lines) {
  check_lines(lines);
  std::unordered_map<std::string_view, i64> counts;
  for (const std::string_view line : lines) for_each_token(line, [&](std::string_view token) { ++counts[token]; });
  std::vector<std::pair<i64, std::string_view>> order;
  for (const auto& [token, count] : counts) order.emplace_back(-count, token);
  std::sort(order.begin(), order.end());
  std::vector<std::string> tokens;
  for (const auto& [count, token] : order) tokens.emplace_back(token);
  return Vocabulary(std::make_shared<const Contents>(tokens));
}

bool Vocabulary::is_segmented() const { return contents_->segmented; }

bool Vocabulary::is_exact() const { return contents_->exact; }

i64 Vocabulary::size() const { return static_cast<i64>(contents_->tokens.size()); }

std::vector<i32> Vocabulary::ids(std::string_view line) const {
  check_line_utf8(line);
  std::vector<i32> result;
  if (is_segmented()) {
    for_each_token(line, [&](std::string_view token) {
      const auto found = contents_->segment_ids.find(token);
      result.push_back(found == contents_->segment_ids.end() ? unknown_id : found->second);
    });
  } else if (is_exact()) {
    contents_->add_exact(line, result);
  } else {
    contents_->add_pieces(line, result);
  }
  return result;
}

std::string Vocabulary::text(std::span<const i32> ids) const {
  std::vector<int> shown;
  for (const i32 id : ids) {
    check(id >= 0 && id < size(), vocabulary_operation, "there is no token ", id, " among ", size());
    if (id == unknown_id || id >= first_piece_id) shown.push_back(id);
  }
  if (is_segmented()) return contents_->joined_segments(shown);
  if (is_exact()) {
    std::string exact;
    for (const int id : shown) exact += text_of(id);
    return exact;
  }
  std::string line;
  check_status(contents_->processor.Decode(shown, &line));
  return line;
}

std::string Vocabulary::text_of(i32 id) const {
  check(is_exact(), vocabulary_operation, "a token of a vocabulary that is not exact has no text of its own");
  std::string text = token(id);
  if (id < first_piece_id) return "";
  const size_t byte = static_cast<size_t>(id - first_piece_id);
  if (byte < bytes_in_all) return {static_cast<char>(byte)};
  for (size_t at = 0; (at = text.find(space_mark, at)) != text.npos;) text.replace(at, space_mark.size(), " ");
  return text;
}

const std::string& Vocabulary::token(i32 id) const {
  check(id >= 0 && id < size(), vocabulary_operation, "there is no token ", id, " among ", size());
  return contents_->tokens[static_cast<size_t>(id)];
}

std::string Vocabulary::to_json() const {
  const auto pieces = [before = static_cast<std::ptrdiff_t>(tokens_before_pieces(is_exact()))](const auto& all) {
    return std::vector(all.begin() + before, all.end());
  };
  ObjectText json;
  json.add("kind", is_segmented() ? kind_of_segmented : is_exact() ? kind_of_exact : kind_of_sentencepiece);
  json.add("tokens", pieces(contents_->tokens));
  if (!is_segmented()) json.add("scores", pieces(contents_->scores));
  return json.text();
}

Vocabulary Vocabulary::from_json(const std::string& text) {
  constexpr JsonLimits limits{.bytes = size_t{1} << 27, .values = 2 * largest_vocabulary + 100};
  const Json json = parse_json_object(text, vocabulary_operation, limits);
  nn::config_json::Reader read(vocabulary_operation, json, nn::config_json::Fields::all);
  std::string kind;
  std::vector<std::string> tokens;
  std::vector<double> scores;
  read("kind", kind);
  read("tokens", tokens);
  const bool exact = kind == kind_of_exact;
  check(exact || kind == kind_of_segmented || kind == kind_of_sentencepiece, vocabulary_operation, "kind must be ",
        kind_of_sentencepiece, ", ", kind_of_exact, " or ", kind_of_segmented, ", not ", printable(kind));
  if (kind != kind_of_segmented) read("scores", scores);
  read.check_all_known();
  if (kind == kind_of_segmented) return Vocabulary(std::make_shared<const Contents>(tokens));
  const std::vector<float> piece_scores(scores.begin(), scores.end());
  return Vocabulary(std::make_shared<const Contents>(tokens, piece_scores, exact));
}

}  // namespace orrery
