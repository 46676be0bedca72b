// Chapter 9. Files: reading exactly the bytes asked for, and replacing a file so that it is never half written.
//
// If a program dies while it writes a file in place, the file is broken. So the new contents go into a second file next
// to it and are flushed to the disk; then the second file is renamed to the first. At every moment, the name stands for
// either all of the old contents or all of the new ones.
// Serves: nn/files/files.h
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/dtype.h"

namespace orrery {

/// An open file of the operating system. The destructor closes it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  /// Closes now; false, with errno set, if that failed. Only this tells whether all that was written has arrived.
  bool close();

 private:
  int number_;  // -1 when closed
};

/// A regular file, open for reading. Errors name the operation "read PATH".
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  u64 size() const { return size_; }
  /// Fills `to` from byte `offset` on; an error if the file ends too early.
  void read(u64 offset, std::span<std::byte> to) const;

 private:
  std::string operation_;
  Descriptor file_;
  u64 size_ = 0;
};

/// Makes `path` a file that holds `parts` one after another, or leaves it as it was and throws an error that names the
/// operation "write PATH". A crash or power failure does no harm at any moment: `path`.tmp is written, flushed and
/// renamed, then its directory is flushed. Errors, besides those of the system: `path` is not a regular file; somebody
/// else is writing it.
void replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// Throws the error that `replace_file` would throw now for a file of `bytes` bytes, and leaves `path` as it is. For
/// use before long work whose result goes there.
void check_replaceable(const std::string& path, u64 bytes);

}  // namespace orrery
