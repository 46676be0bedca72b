// Chapter 9. Characters, bytes and pieces as tokens.
#include "apps/data/tokenizer.h"

#include <algorithm>
#include <map>

#include "apps/data/characters.h"
#include "apps/data/text_file.h"
#include "core/error.h"

namespace orrery {
namespace {

constexpr std::string_view kind_key = "tokens", alphabet_key = "alphabet";
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

Tokenizer Tokenizer::of_bytes() {
  Tokenizer result(TokenKind::bytes);
  for (i32 byte = 0; byte < kinds_of_bytes; ++byte) result.texts_.emplace_back(1, static_cast<char>(byte));
  return result;
}

std::string_view Tokenizer::name() const {
  switch (kind_) {
    case TokenKind::chars: return "characters";
    case TokenKind::bytes: return "bytes";
    case TokenKind::sentencepiece: break;
  }
  return "pieces";
}

std::vector<i32> Tokenizer::tokens(std::string_view text) const {
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

size_t Tokenizer::separable_prefix(std::string_view text) const {
  if (kind_ == TokenKind::bytes) return text.size();
  const size_t whole = whole_characters(text);
  if (kind_ == TokenKind::chars) return whole;
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
  const auto new_line = std::find(texts_.begin(), texts_.end(), "\n");
  return {new_line == texts_.end() ? 0 : static_cast<i32>(new_line - texts_.begin())};
}

Metadata Tokenizer::metadata() const {
  Metadata metadata{{std::string(kind_key), std::string(names(kind_)[static_cast<size_t>(kind_)])}};
  if (alphabet_) metadata[std::string(alphabet_key)] = alphabet_->text();
  if (vocabulary_) metadata[std::string(vocabulary_key)] = vocabulary_->to_json();
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
  check(kind == "sentencepiece", "text", "tokens must be chars, bytes or sentencepiece, not ", printable(kind));
  return Tokenizer(Vocabulary::from_json(entry(vocabulary_key)));
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
