// Chapter 9. A text as tokens: UTF-8 taken apart, and blocks cut out.
//
// Read next: apps/machine.h
#include "apps/text_data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace orrery {
namespace {

// Bytes of the character that begins with `first` (RFC 3629), 0 if none does.
size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// each(character) for every character of a text. Byte order is code point order, in UTF-8.
template <class Each>
void for_each_character(const std::string& text, const Each& each) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of(static_cast<unsigned char>(text[at]));
    bool whole = length > 0 && at + length <= text.size();
    for (size_t i = 1; whole && i < length; ++i) whole = (static_cast<unsigned char>(text[at + i]) & 0xC0) == 0x80;
    check(whole, "text", "is not UTF-8: byte ", at, " begins no character");
    each(text.substr(at, length));
    at += length;
  }
}

// Blocks of `length` tokens that begin at begin(0), begin(1), ...; and the same one token later.
template <class Begin>
TextBatch blocks(const Tensor& tokens, i64 batch, i64 length, const Begin& begin) {
  TextBatch result{Tensor::empty({batch, length}, Dtype::i32), Tensor::empty({batch, length}, Dtype::i32)};
  const i32* from = tokens.data<i32>();
  i32 *ids = result.ids.write<i32>(), *next = result.next.write<i32>();
  for (i64 b = 0; b < batch; ++b) {
    const i64 first = begin(b);
    check(first >= 0 && first + length < tokens.count(), "text", "a block of ", length, " characters from ", first,
          " on does not fit a text of ", tokens.count());
    std::copy_n(from + first, length, ids + b * length);
    std::copy_n(from + first + 1, length, next + b * length);
  }
  return result;
}

}  // namespace

Alphabet::Alphabet(const std::string& text) {
  for_each_character(text, [&](const std::string& character) { numbers_.emplace(character, 0); });
  for (auto& [character, number] : numbers_) {
    number = static_cast<i32>(characters_.size());
    characters_.push_back(character);
  }
}

std::vector<i32> Alphabet::tokens(const std::string& text) const {
  std::vector<i32> result;
  result.reserve(text.size());
  for_each_character(text, [&](const std::string& character) {
    const auto found = numbers_.find(character);
    check(found != numbers_.end(), "text", "character ", result.size() + 1, ", '", character,
          "', is not one of the model's ", size());
    result.push_back(found->second);
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

TextData text_data(const std::string& text, i64 block) {
  const Alphabet alphabet(text);
  const std::vector<i32> tokens = alphabet.tokens(text);
  const i64 count = static_cast<i64>(tokens.size()), training = count * 9 / 10, validation = count - training;
  check(validation > block, "text", "of ", count,
        " characters is too short: the last tenth, for validation, must be longer "
        "than a block of ",
        block);
  const Tensor all = Tensor::of<i32>({count}, tokens);
  return {alphabet, all.rows(0, training), all.rows(training, count)};
}

std::string read_text(const std::string& path) {
  check(!std::filesystem::is_directory(path), "text", path, " is a folder");
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "text", "cannot read ", path, ": ", std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  check(!text.str().empty(), "text", path, " is empty");
  return text.str();
}

TextBatch random_blocks(const Tensor& tokens, i64 batch, i64 length, Rng& rng) {
  check(tokens.count() > length, "text", "a text of ", tokens.count(), " characters has no block of ", length);
  return blocks(tokens, batch, length, [&](i64) { return rng.integer(0, tokens.count() - length); });
}

TextBatch blocks_from(const Tensor& tokens, i64 begin, i64 batch, i64 length) {
  return blocks(tokens, batch, length, [&](i64 b) { return begin + b * length; });
}

}  // namespace orrery
