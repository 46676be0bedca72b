// Chapter 9. Looking up the tokens of segmented text; tokens as text, and vocabularies as JSON.
#include "apps/data/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "core/error.h"
#include "core/utf8.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

constexpr std::string_view kind_of_sentencepiece = "sentencepiece", kind_of_exact = "sentencepiece-exact",
                           kind_of_segmented = "segmented", word_goes_on = "@@", form_c = "nfc";
const std::string normalization_key = "normalization";

// The token that stands for one byte, as SentencePiece writes it: "<0x0A>".
std::string byte_token(size_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
}

void check_line_utf8(std::string_view line) {
  const size_t wrong = first_not_utf8(line);
  check(wrong == line.npos, vocabulary_operation, "the text is not UTF-8: byte ", wrong + 1,
        " of a line begins no character");
}

// Calls each(token) for what stands between the whitespace of a line: ASCII's, as for subword-nmt.
template <class Each> void for_each_token(std::string_view line, const Each& each) {
  for (size_t begin = line.find_first_not_of(ascii_space); begin != line.npos;) {
    const size_t end = std::min(line.find_first_of(ascii_space, begin), line.size());
    each(line.substr(begin, end - begin));
    begin = line.find_first_not_of(ascii_space, end);
  }
}

void check_lines(const std::vector<std::string_view>& lines) {
  bool any = false;
  for (const std::string_view line : lines) {
    check_line_utf8(line);
    for_each_token(line, [&](std::string_view) { any = true; });
  }
  check(any, vocabulary_operation, "there is no text to learn from");
}

// Lines of UTF-8 in one spelling. Those that it changes are kept in `changed`.
std::vector<std::string_view> normalized_lines(const std::vector<std::string_view>& lines,
                                               std::deque<std::string>& changed) {
  std::vector<std::string_view> result;
  for (const std::string_view line : lines) {
    check_line_utf8(line);
    std::string other = normalized(line);
    result.push_back(other == line ? line : changed.emplace_back(std::move(other)));
  }
  return result;
}

// Errors: no token, or too many; one that is empty, not UTF-8, has a zero byte or occurs twice.
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
  bool segmented = false, exact = false, normalized = false;
  std::vector<std::string> tokens;                        // by id, the named ones included
  std::vector<float> scores;                              // of SentencePiece's pieces; 0 for named ids and bytes
  std::optional<PieceModel> model;                        // of SentencePiece's pieces
  std::unordered_map<std::string_view, i32> segment_ids;  // of the tokens of segmented text

  Contents(const std::vector<std::string>& pieces, bool is_normalized)
      : segmented(true), normalized(is_normalized), tokens(with_names(pieces, false)) {
    check_tokens(pieces);
    check(static_cast<i64>(tokens.size()) <= largest_vocabulary, vocabulary_operation, "has more than ",
          largest_vocabulary, " tokens");
    for (size_t id = first_piece_id; id < tokens.size(); ++id) segment_ids[tokens[id]] = static_cast<i32>(id);
  }
  Contents(const std::vector<std::string>& pieces, const std::vector<float>& piece_scores, bool is_exact,
           bool is_normalized)
      : exact(is_exact),
        normalized(is_normalized),
        tokens(with_names(pieces, exact)),
        scores(tokens_before_pieces(exact), 0.0F) {
    check(pieces.size() == piece_scores.size(), vocabulary_operation, "has ", pieces.size(), " pieces and ",
          piece_scores.size(), " scores");
    check_tokens(tokens);
    for (const float score : piece_scores)
      check(std::abs(score) <= 1e6F, vocabulary_operation, "has a score out of range");
    check(!exact || std::find(pieces.begin(), pieces.end(), space_mark) != pieces.end(), vocabulary_operation,
          "has no token for a space");
    scores.insert(scores.end(), piece_scores.begin(), piece_scores.end());
    model.emplace(tokens, scores, exact);
  }

  std::string_view kind() const {
    if (segmented) return kind_of_segmented;
    return exact ? kind_of_exact : kind_of_sentencepiece;
  }

  // Calls use(line) with the line as this vocabulary reads it.
  template <class Use> void read(std::string_view line, const Use& use) const {
    check_line_utf8(line);
    if (normalized)
      use(std::string_view(orrery::normalized(line)));
    else
      use(line);
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
  std::deque<std::string> changed;
  return trained(normalized_lines(lines, changed), size, false);
}

Vocabulary Vocabulary::of_running_text(const std::vector<std::string_view>& lines, i64 size) {
  return trained(lines, size, true);
}

Vocabulary Vocabulary::trained(const std::vector<std::string_view>& lines, i64 size, bool exact) {
  check_lines(lines);
  const ScoredPieces learned = learn_pieces(lines, size, exact);
  return Vocabulary(std::make_shared<const Contents>(learned.pieces, learned.scores, exact, !exact));
}

Vocabulary Vocabulary::of_segmented(const std::vector<std::string_view>& given) {
  std::deque<std::string> changed;
  const std::vector<std::string_view> lines = normalized_lines(given, changed);
  check_lines(lines);
  std::unordered_map<std::string_view, i64> counts;
  for (const std::string_view line : lines) for_each_token(line, [&](std::string_view token) { ++counts[token]; });
  std::vector<std::pair<i64, std::string_view>> order;
  for (const auto& [token, count] : counts) order.emplace_back(-count, token);
  std::sort(order.begin(), order.end());
  std::vector<std::string> tokens;
  for (const auto& [count, token] : order) tokens.emplace_back(token);
  return Vocabulary(std::make_shared<const Contents>(tokens, true));
}

bool Vocabulary::is_segmented() const { return contents_->segmented; }

bool Vocabulary::is_exact() const { return contents_->exact; }

bool Vocabulary::is_normalized() const { return contents_->normalized; }

i64 Vocabulary::size() const { return static_cast<i64>(contents_->tokens.size()); }

std::vector<i32> Vocabulary::ids(std::string_view given) const {
  std::vector<i32> result;
  contents_->read(given, [&](std::string_view line) {
    if (!is_segmented()) return contents_->model->add_ids(line, result);
    for_each_token(line, [&](std::string_view token) {
      const auto found = contents_->segment_ids.find(token);
      result.push_back(found == contents_->segment_ids.end() ? unknown_id : found->second);
    });
  });
  return result;
}

i64 Vocabulary::unknown_letters(std::string_view given) const {
  i64 count = 0;
  contents_->read(given, [&](std::string_view line) {
    if (!is_segmented()) return void(count = is_exact() ? 0 : contents_->model->unknown_letters(line));
    for_each_token(line, [&](std::string_view token) { count += contents_->segment_ids.contains(token) ? 0 : 1; });
  });
  return count;
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
  return contents_->model->joined(shown);
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

double Vocabulary::score(i32 id) const {
  check(!is_segmented(), vocabulary_operation, "segmented tokens have no scores");
  token(id);
  return contents_->scores[static_cast<size_t>(id)];
}

std::string Vocabulary::to_json() const {
  const auto pieces = [before = static_cast<std::ptrdiff_t>(tokens_before_pieces(is_exact()))](const auto& all) {
    return std::vector(all.begin() + before, all.end());
  };
  ObjectText json;
  json.add("kind", contents_->kind());
  if (is_normalized()) json.add(normalization_key, form_c);
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
  const bool normalized = !exact && json.contains(normalization_key);  // older ones are not
  if (normalized) {
    std::string form;
    read(normalization_key, form);
    check(form == form_c, vocabulary_operation, normalization_key, " must be ", form_c, ", not ", printable(form));
  }
  read.check_all_known();
  if (kind == kind_of_segmented) return Vocabulary(std::make_shared<const Contents>(tokens, normalized));
  const std::vector<float> piece_scores(scores.begin(), scores.end());
  return Vocabulary(std::make_shared<const Contents>(tokens, piece_scores, exact, normalized));
}

}  // namespace orrery
