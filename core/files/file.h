// Chapter 9. Files: reading exactly the bytes asked for, and replacing a file so that it is never half written.
//
// If a program dies while it writes a file in place, the file is broken. So the new contents go into a second file next
// to it and are flushed to the disk; then the second file is renamed to the first. At every moment, the name stands for
// either all of the old contents or all of the new ones.
// A lock file tells other processes that a file is in use.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/error.h"

namespace orrery {

/// An error that the operating system reported, in its words. It says nothing about what a file contains.
class SystemError : public Error {
 public:
  using Error::Error;
};

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
  /// The whole file.
  std::string text() const;

 private:
  std::string operation_;
  Descriptor file_;
  u64 size_ = 0;
};

/// A file without a name, for what does not fit into memory. It vanishes with this object, and when the program is
/// killed. It is in the folder that the environment variable TMPDIR names, or else in /var/tmp. Errors name the folder;
/// one of them is that the new file's name cannot be removed, and then an empty file remains.
class ScratchFile {
 public:
  ScratchFile();
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(std::span<const std::byte> bytes);
  /// All that was appended, as memory: the system reads parts of the file when they are used, and may drop them again.
  /// Call it once, at the end.
  std::span<const std::byte> map();

 private:
  std::string operation_;
  Descriptor file_;
  size_t size_ = 0;
  void* memory_ = nullptr;
};

/// A file that grows at its end, such as a log. It is locked while it is open, so that two processes do not mix their
/// lines. Errors name the operation "write PATH".
class AppendedFile {
 public:
  /// Opens the file, or creates it. Error: somebody else is writing it.
  explicit AppendedFile(const std::string& path);
  u64 size() const;
  /// `count` bytes from `offset` on, or fewer where the file ends.
  std::string read(u64 offset, size_t count) const;
  void clear();
  void append(std::string_view text);
  /// Error: what was written has not arrived. Nothing may follow.
  void close();

 private:
  std::string operation_;
  Descriptor file_;
};

/// Makes `path` a file that holds `parts` one after another, or leaves it as it was and throws an error that names the
/// operation "write PATH". A crash or power failure does no harm at any moment: `path`.tmp is written, flushed and
/// renamed, then its directory is flushed; an error there says that the file is written. A file that had the name
/// `path`.tmp before is lost. Where `path` is a symbolic link, the file that it leads to is replaced. Other errors,
/// besides those of the system: `path` is not a regular file; somebody else is writing it.
void replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// Makes the folder `path`, and those around it that are missing, for good: the folder around each new one is flushed,
/// so that files in it are not lost with its name after a power failure. One that is there stays. Errors, of operation
/// "make the folder PATH": those of the system.
void make_folder(const std::string& path);

/// Removes `path`, if it is there, for good: its directory is flushed, so it does not come back after a power failure.
/// Errors, of operation "remove PATH": those of the system.
void remove_file(const std::string& path);

/// Throws the error that `replace_file` would throw now for a file of `bytes` bytes, and leaves `path` as it is. For
/// use before long work whose result goes there.
void check_replaceable(const std::string& path, u64 bytes);

/// A file that will be written, and how large it will be.
struct PlannedFile {
  std::string path;
  u64 bytes = 0;
};
/// The free bytes needed to write `files`, all in one folder, one after another; with `again`, repeatedly. While a file
/// is replaced, its old and its new contents both take space. Files that exist already are taken into account.
u64 room_needed(std::span<const PlannedFile> files, bool again);
/// Error: one of `files` cannot be replaced, as above, or the disk has less than `room_needed` of them.
void check_room(std::span<const PlannedFile> files, bool again);

/// A file by which a process tells others that it is using something, such as model.lock for model. The system releases
/// the lock when the process ends, however it ends, so the file of a killed process locks nobody out. On a file system
/// without locks (some network folders) every process gets one.
class FileLock {
 public:
  /// Tries to take `path`. The file then says "process 4711, OWNER" and is removed at the end. Errors, of operation
  /// "lock PATH": the file cannot be created, or locked; `path` is a file of another kind.
  FileLock(const std::string& path, const std::string& owner);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False if another process has it; `holder` is then what that one wrote.
  bool held() const { return file_.has_value(); }
  const std::string& holder() const { return holder_; }

 private:
  std::string path_, holder_;
  std::optional<Descriptor> file_;
};

}  // namespace orrery
