// Chapter 9. Characters, bytes and pieces as tokens.
#include "apps/data/text_data.h"

#include <algorithm>
#include <map>

#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "core/error.h"

namespace orrery {
namespace {

constexpr std::string_view kind_key = "tokens", alphabet_key = "alphabet", separator_key = "separator",
                           end_of_text_name = "<|endoftext|>";
constexpr size_t longest_line = 4096;  // bytes; a longer line is cut, and SentencePiece gets each part by itself
constexpr i32 kinds_of_bytes = 256;

size_t length_of_line(std::string_view text) {
  const std::string_view begin = text.substr(0, longest_line);
  const size_t end = begin.find('\n');
  return end == begin.npos ? whole_characters(begin) : end + 1;
}

}  // namespace

Alphabet::Alphabet(std::string_view text) {
  std::map<size_t, std::string_view> found;
  std::vector<bool> known;
  for_each_character(text, [&](size_t code, size_t at, size_t bytes) {
    if (code >= known.size()) known.resize(code + 1);
    if (!known[code]) found.emplace(code, text.substr(at, bytes));
    known[code] = true;
  });
  numbers_.assign(known.size(), none);
  for (const auto& [code, character] : found) {
    numbers_[code] = static_cast<i32>(characters_.size());
    characters_.emplace_back(character);
  }
}

std::vector<i32> Alphabet::tokens(std::string_view text) const {
  std::vector<i32> result;
  result.reserve(text.size());
  for_each_character(text, [&](size_t code, size_t at, size_t bytes) {
    const i32 number = code < numbers_.size() ? numbers_[code] : none;
    check(number != none, "text", "character ", result.size() + 1, ", '", text.substr(at, bytes),
          "', is not one of the model's ", size());
    result.push_back(number);
  });
  return result;
}

const std::string& Alphabet::character(i32 token) const {
  check(token >= 0 && token < size(), "text", "there is no character ", token, " among ", size());
  return characters_[static_cast<size_t>(token)];
}

std::string Alphabet::text() const {
  std::string result;
  for (const std::string& character : characters_) result += character;
  return result;
}

Tokenizer::Tokenizer(const Alphabet& alphabet) : kind_(TokenKind::chars), alphabet_(alphabet) {
  for (i32 token = 0; token < alphabet.size(); ++token) texts_.push_back(alphabet.character(token));
}

Tokenizer::Tokenizer(const Vocabulary& vocabulary) : kind_(TokenKind::sentencepiece), vocabulary_(vocabulary) {
  for (i32 token = 0; token < vocabulary.size(); ++token) texts_.push_back(vocabulary.text_of(token));
}

Tokenizer::Tokenizer(const BytePairs& byte_pairs) : kind_(TokenKind::bpe), byte_pairs_(byte_pairs) {
  for (i32 token = 0; token < byte_pairs.size(); ++token) texts_.push_back(byte_pairs.text_of(token));
}

void Tokenizer::separate_at(const std::string& line) {
  check(!line.empty() && line.find('\n') == line.npos, "text", "a separator must be one line, not ", printable(line));
  check(kind_ == TokenKind::sentencepiece || kind_ == TokenKind::bpe, "text", name(),
        " have no token that is no text, ",
        "as a separator needs: take --tokens sentencepiece, or --init with a model of GPT-2's tokens");
  separator_ = kind_ == TokenKind::bpe ? byte_pairs_->id_of(std::string(end_of_text_name)) : std::optional(end_id);
  check(separator_.has_value(), "text", "the model's tokens lack ", end_of_text_name, ", which a separator needs");
  texts_[static_cast<size_t>(*separator_)] = line + '\n';
}

std::optional<i32> Tokenizer::end_of_text() const {
  return byte_pairs_ ? byte_pairs_->id_of(std::string(end_of_text_name)) : separator_;
}

Tokenizer Tokenizer::of_bytes() {
  Tokenizer result(TokenKind::bytes);
  for (i32 byte = 0; byte < kinds_of_bytes; ++byte) result.texts_.emplace_back(1, static_cast<char>(byte));
  return result;
}

std::string_view Tokenizer::name() const {
  switch (kind_) {
    case TokenKind::chars: return "characters";
    case TokenKind::bytes: return "bytes";
    case TokenKind::sentencepiece:
    case TokenKind::bpe: break;
  }
  return "pieces";
}

std::vector<i32> Tokenizer::tokens(std::string_view text) const {
  if (!separator_) return tokens_of_document(text);
  const std::string& line = this->text(*separator_);
  std::vector<i32> result;
  for (size_t begin = 0; begin < text.size();) {  // of a document
    size_t end = begin;
    while (end < text.size() && !text.substr(end).starts_with(line))
      end = std::min(text.size(), text.find('\n', end)) + 1;
    end = std::min(end, text.size());
    const std::vector<i32> document = tokens_of_document(text.substr(begin, end - begin));
    result.insert(result.end(), document.begin(), document.end());
    if (end < text.size()) result.push_back(*separator_);
    begin = end + line.size();
  }
  return result;
}

std::vector<i32> Tokenizer::tokens_of_document(std::string_view text) const {
  if (kind_ == TokenKind::bpe) return byte_pairs_->ids(text);
  if (kind_ == TokenKind::chars) return alphabet_->tokens(text);
  if (kind_ == TokenKind::bytes) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::vector<i32> result;
  for (const std::string_view line : lines_in(text)) {
    const std::vector<i32> ids = vocabulary_->ids(line);
    result.insert(result.end(), ids.begin(), ids.end());
  }
  return result;
}

// The rest of a text must not begin within a separator, nor look as if it began with one, whatever follows.
size_t Tokenizer::separable_prefix(std::string_view text) const {
  if (!separator_) return separable_in_document(text);
  const std::string& line = this->text(*separator_);
  const size_t last_line = text.rfind('\n') + 1;
  for (size_t end = line.starts_with(text.substr(last_line)) ? last_line : text.size();;) {
    end = separable_in_document(text.substr(0, end));
    if (end == 0) return 0;
    const size_t begin = text.rfind('\n', end - 1) + 1;  // of the line that is cut
    if (begin == end) return end;
    if (text.substr(begin).starts_with(line)) return begin + line.size();
    const std::string_view rest = text.substr(end);
    if (!rest.starts_with(line) && !line.starts_with(rest)) return end;
    --end;
  }
}

size_t Tokenizer::separable_in_document(std::string_view text) const {
  if (kind_ == TokenKind::bytes) return text.size();
  const size_t whole = whole_characters(text);
  if (kind_ == TokenKind::chars) return whole;
  if (kind_ == TokenKind::bpe) return prefix_of_whole_words(text.substr(0, whole));
  size_t end = 0;
  for (const std::string_view line : lines_in(text.substr(0, whole)))
    if (end + line.size() < whole || line.back() == '\n') end += line.size();
  return end;
}

const std::string& Tokenizer::text(i32 token) const {
  check(token >= 0 && token < size(), "text", "there is no token ", token, " among ", size());
  return texts_[static_cast<size_t>(token)];
}

std::vector<i32> Tokenizer::beginning() const {
  if (const std::optional<i32> end = end_of_text()) return {*end};
  const auto new_line = std::find(texts_.begin(), texts_.end(), "\n");
  return {new_line == texts_.end() ? 0 : static_cast<i32>(new_line - texts_.begin())};
}

Metadata Tokenizer::metadata() const {
  Metadata metadata{{std::string(kind_key), std::string(names(kind_)[static_cast<size_t>(kind_)])}};
  if (alphabet_) metadata[std::string(alphabet_key)] = alphabet_->text();
  if (vocabulary_) metadata[std::string(vocabulary_key)] = vocabulary_->to_json();
  if (byte_pairs_) metadata[std::string(vocabulary_key)] = byte_pairs_->to_json();
  if (separator_) metadata[std::string(separator_key)] = text(*separator_).substr(0, text(*separator_).size() - 1);
  return metadata;
}

bool Tokenizer::is_in(const Metadata& metadata) {
  return metadata.contains(std::string(kind_key)) || metadata.contains(std::string(alphabet_key));
}

Tokenizer Tokenizer::of_metadata(const Metadata& metadata) {
  const auto entry = [&](std::string_view key) -> const std::string& {
    const auto found = metadata.find(std::string(key));
    check(found != metadata.end(), "text", "the file does not name its ", key);
    return found->second;
  };
  // Models of an older version have an alphabet, and do not say that their tokens are characters.
  const bool older = !metadata.contains(std::string(kind_key)) && metadata.contains(std::string(alphabet_key));
  const std::string kind = older ? "chars" : entry(kind_key);
  if (kind == "chars") return Tokenizer(Alphabet(entry(alphabet_key)));
  if (kind == "bytes") return of_bytes();
  check(kind == "sentencepiece" || kind == "bpe", "text", "tokens must be chars, bytes, sentencepiece or bpe, not ",
        printable(kind));
  Tokenizer result = kind == "bpe" ? Tokenizer(BytePairs::from_json(entry(vocabulary_key)))
                                   : Tokenizer(Vocabulary::from_json(entry(vocabulary_key)));
  if (metadata.contains(std::string(separator_key))) result.separate_at(entry(separator_key));
  return result;
}

std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, std::max<size_t>(1, length_of_line(text))));
    text.remove_prefix(lines.back().size());
  }
  return lines;
}

}  // namespace orrery
