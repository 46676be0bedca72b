// Chapter 9. A text as tokens, in memory or in a mapped file: a text of any length takes little memory.
//
// Tokens stand one after another, each in the fewest of 1, 2 or 4 bytes that hold every token's number. So token i is
// found at once, whatever the tokens are, and a batch costs as much in a text of ten gigabytes as in a small one. Up to
// 16 MB of them stay in memory. More go into a file without a name (ScratchFile in core/files/file.h), which is mapped:
// the system keeps in memory what was read last. nanoGPT's train.bin is the same, except that it has a name. The price
// is room on the disk: for characters of at most 256 kinds and for bytes at most as much as the text takes, for pieces
// of words about half.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/files/file.h"

namespace orrery {

/// Copies share the tokens, which never change.
class Text {
 public:
  Text() = default;
  i64 count() const { return end_ - begin_; }
  /// Tokens number `first`, `first` + 1, ... Error: the text has fewer.
  void copy(i64 first, std::span<i32> to) const;
  /// Tokens from `begin` to before `end`.
  Text part(i64 begin, i64 end) const;

 private:
  friend class TextWriter;
  std::shared_ptr<const void> owner_;
  const std::byte* tokens_ = nullptr;
  size_t bytes_of_token_ = 1;
  i64 begin_ = 0, end_ = 0;
};

/// Collects the tokens of a text.
class TextWriter {
 public:
  static constexpr size_t most_in_memory = size_t{1} << 24;

  /// Tokens from 0 to before `kinds`. If they take more than `most` bytes, they go into a file.
  explicit TextWriter(i64 kinds, size_t most = most_in_memory);
  /// Error: a token out of range; those of the file.
  void add(std::span<const i32> tokens);
  /// The text of all tokens that were added. Call it once, at the end.
  Text finish();

 private:
  const i64 kinds_;
  const size_t bytes_of_token_, most_;
  std::vector<std::byte> waiting_;
  std::shared_ptr<ScratchFile> file_;
  i64 count_ = 0;
};

/// A short text, in memory.
Text short_text(std::span<const i32> tokens, i64 kinds);

}  // namespace orrery
