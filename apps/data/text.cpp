// Chapter 9. Tokens in few bytes: written, mapped, and read again; blocks of them, cut out and shuffled.
#include "apps/data/text.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"

namespace orrery {
namespace {

// The low bytes of numbers, in this machine's order.
template <class Narrow> void narrow(std::span<const i32> tokens, std::byte* to) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Narrow token = static_cast<Narrow>(tokens[i]);
    std::memcpy(to + i * sizeof token, &token, sizeof token);
  }
}

template <class Narrow> void widen(const std::byte* from, std::span<i32> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    Narrow token;
    std::memcpy(&token, from + i * sizeof token, sizeof token);
    tokens[i] = static_cast<i32>(token);
  }
}

size_t bytes_for(i64 kinds) {
  if (kinds <= 1 << 8) return 1;
  return kinds <= 1 << 16 ? 2 : 4;
}

}  // namespace

void Text::copy(i64 first, std::span<i32> to) const {
  check(first >= 0 && first + static_cast<i64>(to.size()) <= count(), "text", to.size(), " tokens from ", first,
        " on do not fit a text of ", count());
  const std::byte* from = tokens_ + static_cast<size_t>(begin_ + first) * bytes_of_token_;
  if (bytes_of_token_ == 1) return widen<u8>(from, to);
  if (bytes_of_token_ == 2) return widen<u16>(from, to);
  widen<u32>(from, to);
}

Text Text::part(i64 begin, i64 end) const {
  check(begin >= 0 && begin <= end && end <= count(), "text", "there is no part from ", begin, " to ", end, " in ",
        count(), " tokens");
  Text result = *this;
  result.begin_ = begin_ + begin;
  result.end_ = begin_ + end;
  return result;
}

TextWriter::TextWriter(i64 kinds, size_t most) : kinds_(kinds), bytes_of_token_(bytes_for(kinds)), most_(most) {}

void TextWriter::add(std::span<const i32> tokens) {
  for (const i32 token : tokens) check(token >= 0 && token < kinds_, "text", "there is no token ", token);
  const size_t before = waiting_.size();
  waiting_.resize(before + tokens.size() * bytes_of_token_);
  std::byte* to = waiting_.data() + before;
  if (bytes_of_token_ == 1)
    narrow<u8>(tokens, to);
  else if (bytes_of_token_ == 2)
    narrow<u16>(tokens, to);
  else
    narrow<u32>(tokens, to);
  count_ += static_cast<i64>(tokens.size());
  if (!file_ && waiting_.size() > most_) file_ = std::make_shared<ScratchFile>();
  if (file_) {
    file_->append(waiting_);
    waiting_.clear();
    waiting_.shrink_to_fit();
  }
}

Text TextWriter::finish() {
  Text text;
  text.bytes_of_token_ = bytes_of_token_;
  text.end_ = count_;
  if (file_) {
    text.tokens_ = file_->map().data();
    text.owner_ = file_;
  } else {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(waiting_));
    text.tokens_ = kept->data();
    text.owner_ = kept;
  }
  return text;
}

Text short_text(std::span<const i32> tokens, i64 kinds) {
  TextWriter writer(kinds);
  writer.add(tokens);
  return writer.finish();
}

namespace {

// Blocks of `length` tokens that begin at begin(0), begin(1), ..., and as labels the same one token later.
template <class Begin> TextBatch blocks(const Text& text, i64 batch, i64 length, const Begin& begin) {
  TextBatch result{Tensor::empty({batch, length}, Dtype::i32), Tensor::empty({batch, length}, Dtype::i32)};
  i32 *ids = result.ids.write<i32>(), *labels = result.labels.write<i32>();
  std::vector<i32> tokens(static_cast<size_t>(length + 1));
  for (i64 b = 0; b < batch; ++b) {
    text.copy(begin(b), tokens);
    std::copy_n(tokens.begin(), length, ids + b * length);
    std::copy_n(tokens.begin() + 1, length, labels + b * length);
  }
  return result;
}

}  // namespace

TextBatch random_blocks(const Text& text, i64 batch, i64 length, Rng& rng) {
  check(text.count() > length, "text", "a text of ", text.count(), " tokens has no block of ", length);
  return blocks(text, batch, length, [&](i64) { return rng.integer(0, text.count() - length); });
}

TextBatch blocks_from(const Text& text, i64 begin, i64 batch, i64 length, i64 stride) {
  return blocks(text, batch, length, [&](i64 b) { return begin + b * stride; });
}

ShuffledBlocks::ShuffledBlocks(const Text& text, i64 length, const Rng& numbers, i64 most_listed)
    : text_(text), length_(length), in_epoch_(text.count() / length - 1), most_listed_(most_listed), numbers_(numbers) {
  check(in_epoch_ > 0, "text", "a text of ", text.count(), " tokens is too short for blocks of ", length,
        " in random order");
}

void ShuffledBlocks::shuffle(i64 epoch) {
  // One number for the beginning and one for each block. Twice as many are reserved, since a draw may use several.
  const u64 kept_free = 2 * static_cast<u64>(in_epoch_ + 1);
  Rng rng(numbers_.seed(), numbers_.position() + static_cast<u64>(epoch) * kept_free);
  const i64 beginning = rng.integer(0, length_);
  if (in_epoch_ > most_listed_)
    key_ = rng.bits64();
  else
    order_ = rng.permutation(in_epoch_);  // the only line that can fail
  beginning_ = beginning;
  epoch_ = epoch;
}

i64 ShuffledBlocks::block_at(i64 place) const {
  return in_epoch_ > most_listed_ ? permuted(place, in_epoch_, key_) : order_[static_cast<size_t>(place)];
}

TextBatch ShuffledBlocks::batch(i64 first_block, i64 count) {
  return blocks(text_, count, length_, [&](i64 b) {
    const i64 number = first_block + b;
    if (number / in_epoch_ != epoch_) shuffle(number / in_epoch_);
    return beginning_ + block_at(number % in_epoch_) * length_;
  });
}

// Luby and Rackoff (1988): rounds that add a random function of one half of the bits to the other half permute all
// numbers of this many bits, whatever the function. Numbers that are too large are permuted on until they are not.
i64 permuted(i64 place, i64 count, u64 key) {
  constexpr u32 rounds = 4;
  const int half = (std::bit_width(static_cast<u64>(count - 1)) + 1) / 2;
  const u64 mask = (u64{1} << half) - 1;
  u64 number = static_cast<u64>(place);
  do {
    u64 left = number >> half, right = number & mask;
    for (u32 round = 0; round < rounds; ++round) {
      const PhiloxBlock words =
          philox4x32({static_cast<u32>(right), round, 0, 0}, {static_cast<u32>(key), static_cast<u32>(key >> 32)});
      const u64 next = (left ^ words[0]) & mask;
      left = right;
      right = next;
    }
    number = left << half | right;
  } while (number >= static_cast<u64>(count));
  return static_cast<i64>(number);
}

}  // namespace orrery
