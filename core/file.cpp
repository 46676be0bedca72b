// Chapter 9. Files: the system calls, each one checked.
//
// A full disk may show only when data is flushed or the file is closed: the results of fsync and close count as much as
// write's. A call that a signal interrupted (EINTR) is made again; a short write is continued.
// Read next: core/safetensors.h
#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace orrery {
namespace {

constexpr mode_t default_mode = 0666;  // less the user's umask

// Throws what the operating system says of the last call, unless that went well.
void check_call(bool ok, const std::string& operation, std::string_view what = "") {
  if (!ok) fail(operation, what, std::generic_category().message(errno));
}

// Repeats a system call as long as a signal interrupts it.
template <class Call>
auto retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_file(const std::string& path, int flags) {
  return retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, default_mode); });
}

void check_regular(const struct stat& status, const std::string& operation) {
  check(!S_ISDIR(status.st_mode), operation, "is a directory");
  check(S_ISREG(status.st_mode), operation, "is not a regular file");
}

// Removes the temporary file unless it was renamed.
struct Temporary {
  const std::string& path;
  bool renamed = false;
  ~Temporary() {
    if (!renamed) ::unlink(path.c_str());
  }
};

// Takes the temporary file for ourselves. One left behind by a program that was killed is used again; one that somebody
// is writing is locked, and so is one that somebody renamed between our opening and our locking it.
void lock(const Descriptor& file, const std::string& path, const std::string& operation) {
  struct stat ours {
  }, named{};
  check(retry([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) == 0 && ::fstat(file.number(), &ours) == 0 &&
            ::lstat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino && ours.st_dev == named.st_dev,
        operation, "somebody else is writing ", path);
  check_regular(ours, operation);
}

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& operation) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] { return ::write(file.number(), bytes.data(), bytes.size()); });
    check_call(written >= 0, operation);
    check(written > 0, operation, "the system accepts no more bytes");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

// A rename is on the disk once its directory is.
void flush_directory(const std::string& path, const std::string& operation) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Descriptor directory(open_file(folder, O_RDONLY | O_DIRECTORY));
  const bool flushed = directory.number() >= 0 && retry([&] { return ::fsync(directory.number()); }) == 0;
  const bool unsupported = errno == EINVAL;  // some file systems have nothing to flush in a directory
  check_call(flushed || unsupported, operation, "written, but its directory cannot be flushed: ");
}

}  // namespace

Descriptor::~Descriptor() { close(); }

bool Descriptor::close() {
  const int number = std::exchange(number_, -1);
  return number < 0 || ::close(number) == 0 || errno == EINTR;  // interrupted, it is closed all the same
}

InputFile::InputFile(const std::string& path)
    : operation_("read " + path), file_(open_file(path, O_RDONLY | O_NONBLOCK)) {
  check_call(file_.number() >= 0, operation_);
  struct stat status {};
  check_call(::fstat(file_.number(), &status) == 0, operation_);
  check_regular(status, operation_);
  size_ = static_cast<u64>(status.st_size);
}

void InputFile::read(u64 offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got =
        retry([&] { return ::pread(file_.number(), to.data(), to.size(), static_cast<off_t>(offset)); });
    check_call(got >= 0, operation_);
    check(got > 0, operation_, "ends early, at byte ", offset);
    offset += static_cast<u64>(got);
    to = to.subspan(static_cast<size_t>(got));
  }
}

void replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const std::string operation = "write " + path, temporary_path = path + ".tmp";
  struct stat before {};
  const bool exists = ::stat(path.c_str(), &before) == 0;
  if (exists) check_regular(before, operation);

  Descriptor file(open_file(temporary_path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK));
  check_call(file.number() >= 0, operation, "cannot create " + temporary_path + ": ");
  lock(file, temporary_path, operation);
  const Descriptor lock_holder(::dup(file.number()));  // the lock stays until after the rename
  Temporary temporary{temporary_path};
  check_call(::ftruncate(file.number(), 0) == 0, operation);
  if (exists) check_call(::fchmod(file.number(), before.st_mode & 07777) == 0, operation);
  for (const auto& part : parts) write_all(file, part, operation);
  check_call(retry([&] { return ::fsync(file.number()); }) == 0, operation);
  check_call(file.close(), operation);
  check_call(::rename(temporary_path.c_str(), path.c_str()) == 0, operation);
  temporary.renamed = true;
  flush_directory(path, operation);
}

}  // namespace orrery
