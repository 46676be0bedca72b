// Chapter 9. Tokens in few bytes: written, mapped, and read again.
#include "apps/data/text.h"

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

}  // namespace orrery
