// Chapter 9. A text as tokens: decoding UTF-8, and cutting out blocks.
//
// Serves: nn/models/gpt.h
#include "apps/lm/text_data.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "apps/program/machine.h"
#include "core/files/file.h"
#include "core/utf8.h"

namespace orrery {
namespace {

// Calls each(code, character) for every character of a text.
template <class Each>
void for_each_character(std::string_view text, const Each& each) {
  for (size_t at = 0; at < text.size();) {
    const Character found = first_character(text.substr(at));
    check(found.bytes > 0, "text", "is not UTF-8: byte ", at, " begins no character");
    each(found.code, text.substr(at, found.bytes));
    at += found.bytes;
  }
}

// Blocks of `length` tokens that begin at begin(0), begin(1), ..., and as labels the same one token later.
template <class Begin>
TextBatch blocks(const Tensor& tokens, i64 batch, i64 length, const Begin& begin) {
  TextBatch result{Tensor::empty({batch, length}, Dtype::i32), Tensor::empty({batch, length}, Dtype::i32)};
  const i32* from = tokens.data<i32>();
  i32 *ids = result.ids.write<i32>(), *labels = result.labels.write<i32>();
  for (i64 b = 0; b < batch; ++b) {
    const i64 first = begin(b);
    check(first >= 0 && first + length < tokens.count(), "text", "a block of ", length, " characters from ", first,
          " on does not fit a text of ", tokens.count());
    std::copy_n(from + first, length, ids + b * length);
    std::copy_n(from + first + 1, length, labels + b * length);
  }
  return result;
}

}  // namespace

Alphabet::Alphabet(const std::string& text) {
  std::map<size_t, std::string_view> found;
  std::vector<bool> known;
  for_each_character(text, [&](size_t code, std::string_view character) {
    if (code >= known.size()) known.resize(code + 1);
    if (!known[code]) found.emplace(code, character);
    known[code] = true;
  });
  numbers_.assign(known.size(), none);
  for (const auto& [code, character] : found) {
    numbers_[code] = static_cast<i32>(characters_.size());
    characters_.emplace_back(character);
  }
}

std::vector<i32> Alphabet::tokens(const std::string& text) const {
  std::vector<i32> result;
  result.reserve(text.size());
  for_each_character(text, [&](size_t code, std::string_view character) {
    const i32 number = code < numbers_.size() ? numbers_[code] : none;
    check(number != none, "text", "character ", result.size() + 1, ", '", character, "', is not one of the model's ",
          size());
    result.push_back(number);
  });
  return result;
}

const std::string& Alphabet::character(i32 token) const {
  check(token >= 0 && token < size(), "text", "there is no character ", token, " among ", size());
  return characters_[static_cast<size_t>(token)];
}

std::vector<i32> Alphabet::beginning() const {
  const bool has_lines = numbers_.size() > '\n' && numbers_['\n'] != none;
  return {has_lines ? numbers_['\n'] : 0};
}

std::string Alphabet::text() const {
  std::string result;
  for (const std::string& character : characters_) result += character;
  return result;
}

Tensor tokens_of(const std::string& text, const Alphabet& alphabet) {
  const std::vector<i32> tokens = alphabet.tokens(text);
  return Tensor::of<i32>({static_cast<i64>(tokens.size())}, tokens);
}

TextData text_data(const std::string& text, i64 block) { return text_data(text, block, Alphabet(text)); }

TextData text_data(const std::string& text, i64 block, const Alphabet& alphabet) {
  const Tensor all = tokens_of(text, alphabet);
  const i64 count = all.count(), training = count * 9 / 10, validation = count - training;
  check(validation > block, "text", "of ", count,
        " characters is too short: the last tenth, for validation, must be longer "
        "than a block of ",
        block);
  return {alphabet, all.rows(0, training), all.rows(training, count)};
}

std::string text_path(const std::string& given) {
  constexpr std::string_view shipped_text = "tinyshakespeare.txt";
  if (!given.empty()) return given;
  const std::filesystem::path shipped = std::filesystem::path(ORRERY_DATA_FOLDER) / shipped_text;
  for (const std::filesystem::path& path : {std::filesystem::path("apps/data") / shipped_text, shipped})
    if (std::filesystem::exists(path)) return path.string();
  fail("text", "none is given, and the one that comes with the program is not at ", shipped.string());
}

std::string read_text(const std::string& path) {
  const InputFile file(path);
  check(file.size() > 0, "text", path, " is empty");
  // The character, its token, and a second copy of the token while the tensor is made.
  constexpr u64 bytes_of_character = 1 + 2 * sizeof(i32);
  const u64 memory = static_cast<u64>(physical_memory());
  check(file.size() <= memory / bytes_of_character, "text", path, " has ", file.size(),
        " bytes, too many for this machine's ", memory >> 20, " MB of memory");
  std::string text(file.size(), ' ');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

TextBatch random_blocks(const Tensor& tokens, i64 batch, i64 length, Rng& rng) {
  check(tokens.count() > length, "text", "a text of ", tokens.count(), " characters has no block of ", length);
  return blocks(tokens, batch, length, [&](i64) { return rng.integer(0, tokens.count() - length); });
}

TextBatch blocks_from(const Tensor& tokens, i64 begin, i64 batch, i64 length) {
  return blocks(tokens, batch, length, [&](i64 b) { return begin + b * length; });
}

ShuffledBlocks::ShuffledBlocks(const Tensor& tokens, i64 length, const Rng& numbers)
    : tokens_(tokens), length_(length), in_epoch_(tokens.count() / length - 1), numbers_(numbers) {
  check(in_epoch_ > 0, "text", "a text of ", tokens.count(), " characters is too short for blocks of ", length,
        " in random order");
}

void ShuffledBlocks::shuffle(i64 epoch) {
  // One number for the beginning and one for each block. Twice as many are reserved, since a draw may use several.
  const u64 kept_free = 2 * static_cast<u64>(in_epoch_ + 1);
  Rng rng(numbers_.seed(), numbers_.position() + static_cast<u64>(epoch) * kept_free);
  const i64 beginning = rng.integer(0, length_);
  begins_.clear();
  for (i64 i = 0; i < in_epoch_; ++i) begins_.push_back(beginning + i * length_);
  for (i64 i = in_epoch_; i > 1; --i)  // Fisher and Yates: place i gets one of those not yet placed
    std::swap(begins_[static_cast<size_t>(i - 1)], begins_[static_cast<size_t>(rng.integer(0, i))]);
  epoch_ = epoch;
}

TextBatch ShuffledBlocks::batch(i64 first_block, i64 count) {
  return blocks(tokens_, count, length_, [&](i64 b) {
    const i64 number = first_block + b;
    if (number / in_epoch_ != epoch_) shuffle(number / in_epoch_);
    return begins_[static_cast<size_t>(number % in_epoch_)];
  });
}

}  // namespace orrery
