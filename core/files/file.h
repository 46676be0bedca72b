// Chapter 9. Files: reading with every byte accounted for, and replacing a file so that it is never half written.
//
// A file that is written in place is broken if the program dies meanwhile. So the new contents go into a second file
// beside it, are forced to the disk, and the second file then takes the first one's name: at every moment the name
// stands for the whole old or the whole new contents.
// Serves: nn/files/files.h
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/dtype.h"

namespace orrery {

/// An open file of the operating system, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  /// Closes now; false, with errno set, if that failed. The last word on whether what was written has arrived.
  bool close();

 private:
  int number_;  // -1 when closed
};

/// A regular file, open for reading. Errors are of operation "read PATH".
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  u64 size() const { return size_; }
  /// Fills `to` from byte `offset` on; an error if the file ends before.
  void read(u64 offset, std::span<std::byte> to) const;

 private:
  std::string operation_;
  Descriptor file_;
  u64 size_ = 0;
};

/// Makes `path` a file that holds `parts` one after another, or leaves it as it was and throws an error of operation
/// "write PATH". Survives a crash or power failure at any moment: written to `path`.tmp, flushed, renamed, directory
/// flushed. Errors besides what the system reports: `path` is something other than a regular file; somebody else is
/// writing it.
void replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// Error, the one that `replace_file` would throw: `path` cannot be made a file of `bytes` bytes now. Leaves `path` as
/// it is. Before long work whose result goes there.
void check_replaceable(const std::string& path, u64 bytes);

}  // namespace orrery
