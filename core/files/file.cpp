// Chapter 9. Files: the system calls, each one checked.
//
// A full disk may be reported only when data is flushed or the file is closed, so the results of fsync and close are
// checked like those of write. A call that a signal interrupted (EINTR) is repeated; a short write is continued.
#include "core/files/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr mode_t default_mode = 0666, folder_mode = 0777;  // minus the user's umask

// Throws the operating system's message about the last call, unless the call succeeded.
void check_call(bool ok, const std::string& operation, std::string_view what = "") {
  if (!ok) throw SystemError(operation, harmless(what) + std::generic_category().message(errno));
}

// Repeats a system call as long as signals interrupt it.
template <class Call> auto retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_file(const std::string& path, int flags) {
  return retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, default_mode); });
}

// What the system knows of an open file. That it could not be opened is an error here, too.
struct stat status_of(const Descriptor& file, const std::string& operation) {
  struct stat status {};
  check_call(file.number() >= 0 && ::fstat(file.number(), &status) == 0, operation);
  return status;
}

void check_regular(const struct stat& status, const std::string& operation) {
  check(!S_ISDIR(status.st_mode), operation, "is a directory");
  check(S_ISREG(status.st_mode), operation, "is not a regular file");
}

// False if somebody else has the lock. A file system that knows no locks gives none: we go on as if it were ours.
bool try_flock(const Descriptor& file, const std::string& operation) {
  if (retry([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) == 0) return true;
  const bool unsupported = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
  check_call(unsupported || errno == EWOULDBLOCK, operation, "cannot be locked: ");
  return unsupported;
}

// Whether `path` is still the name of the open file.
bool is_named(const Descriptor& file, const std::string& path) {
  struct stat ours {
  }, named{};
  return ::fstat(file.number(), &ours) == 0 && ::lstat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

// Locks the temporary file. One that was left behind by a killed program is used again. It is an error if somebody else
// is writing the file (and so holds the lock), or has renamed it between our opening and locking it.
void take_lock(const Descriptor& file, const std::string& path, const std::string& operation) {
  check(try_flock(file, operation) && is_named(file, path), operation, "somebody else is writing ", path);
  check_regular(status_of(file, operation), operation);
}

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& operation) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] { return ::write(file.number(), bytes.data(), bytes.size()); });
    check_call(written >= 0, operation);
    check(written > 0, operation, "the system accepts no more bytes");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void empty(const Descriptor& file, const std::string& operation) {
  check_call(retry([&] { return ::ftruncate(file.number(), 0); }) == 0, operation);
}

// `count` bytes from `offset` on, or fewer where the file ends.
std::string read_part(const Descriptor& file, u64 offset, size_t count, const std::string& operation) {
  std::string text(count, ' ');
  size_t got = 0;
  for (ssize_t more = 1; more > 0 && got < count; got += static_cast<size_t>(more)) {
    more =
        retry([&] { return ::pread(file.number(), text.data() + got, count - got, static_cast<off_t>(offset + got)); });
    check_call(more >= 0, operation);
  }
  return text.substr(0, got);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A rename is on the disk only when its directory has been flushed.
void flush_directory(const std::string& path, const std::string& operation, std::string_view done) {
  Descriptor directory(open_file(folder_of(path), O_RDONLY | O_DIRECTORY));
  const bool flushed = directory.number() >= 0 && retry([&] { return ::fsync(directory.number()); }) == 0;
  const bool unsupported = errno == EINVAL;  // some file systems have nothing to flush in a directory
  check_call(flushed || unsupported, operation, std::string(done) + ", but its directory cannot be flushed: ");
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The mode of `path`, if it exists; an error if it is anything but a regular file.
std::optional<mode_t> mode_of_regular(const std::string& path, const std::string& operation) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  check_regular(status, operation);
  return status.st_mode & 07777;
}

// Removes our temporary file at the end, unless it has been renamed.
struct Temporary {
  const std::string& path;
  bool ours = false;
  ~Temporary() {
    if (ours) ::unlink(path.c_str());
  }
};

// What a symbolic link leads to: that file is replaced, and the link stays. Any other path, and a link that leads
// nowhere, as it is.
std::string target_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_symlink(path, unknown)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, unknown);
  return unknown ? path : target.string();
}

// The new file next to `path`: locked, empty, and with the mode of `path`.
struct Replacement {
  explicit Replacement(const std::string& path)
      : operation("write " + path),
        mode(mode_of_regular(path, operation)),
        temporary_path(path + ".tmp"),
        file(open_file(temporary_path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK)),
        temporary{temporary_path} {
    // Nothing up to `ours` may allocate: if that failed, the file would be left behind.
    if (file.number() < 0) check_call(false, operation, "cannot create " + temporary_path + ": ");
    take_lock(file, temporary_path, operation);
    temporary.ours = true;
    empty(file, operation);
    if (mode) check_call(retry([&] { return ::fchmod(file.number(), *mode); }) == 0, operation);
  }

  std::string operation;
  std::optional<mode_t> mode;  // none if `path` does not exist
  std::string temporary_path;
  Descriptor file;
  std::optional<Descriptor> lock_holder{};  // keeps the lock until after the rename, before which `file` is closed
  Temporary temporary;                      // removed before the lock is given back, or it might be somebody else's
};

u64 size_of_regular(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<u64>(status.st_size) : 0;
}

// The free bytes for files next to `path`; none if the file system does not say.
std::optional<u64> free_bytes(const std::string& path) {
  struct statvfs system {};
  if (::statvfs(folder_of(path).c_str(), &system) != 0 || system.f_blocks == 0) return std::nullopt;
  return static_cast<u64>(system.f_bavail) * system.f_frsize;
}

std::string scratch_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/var/tmp";
}

// The number of a new file whose name is removed at once; -1 with errno if one of both failed.
int open_without_name(const std::string& folder) {
  std::string path;
  const int number = retry([&] {
    path = folder + "/orrery-XXXXXX";  // each try replaces the X, also one that fails
    return ::mkostemp(path.data(), O_CLOEXEC);
  });
  if (number < 0 || ::unlink(path.c_str()) == 0) return number;
  const int error = errno;
  ::close(number);
  errno = error;
  return -1;
}

// Lock files begin with this, so that no other file is mistaken for one.
constexpr std::string_view lock_mark = "process ";

// The first line of a lock file, as far as a message needs it.
std::string read_lock(const Descriptor& file, const std::string& operation) {
  constexpr size_t enough = 300;
  const std::string text = read_part(file, 0, enough, operation);
  if (text.find_first_not_of('\0') == text.npos) return "";  // what was written was lost in a power failure
  return text.substr(0, text.find('\n'));
}

// The kind of a file is checked before it is opened: opening a device may already do something, such as rewind a tape.
Descriptor open_regular(const std::string& path, const std::string& operation) {
  mode_of_regular(path, operation);
  return Descriptor(open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
}

}  // namespace

Descriptor::~Descriptor() { close(); }

bool Descriptor::close() {
  const int number = std::exchange(number_, -1);
  return number < 0 || ::close(number) == 0 || errno == EINTR;  // after EINTR it is closed all the same
}

InputFile::InputFile(const std::string& path) : operation_("read " + path), file_(open_regular(path, operation_)) {
  const struct stat status = status_of(file_, operation_);
  check_regular(status, operation_);  // once more, since the name may have another meaning by now
  size_ = static_cast<u64>(status.st_size);
}

std::string InputFile::text() const {
  std::string all(size_, ' ');
  read(0, std::as_writable_bytes(std::span(all)));
  return all;
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

ScratchFile::ScratchFile()
    : operation_("write a temporary file in " + scratch_folder() + " (set TMPDIR to use another folder)"),
      file_(open_without_name(scratch_folder())) {
  check_call(file_.number() >= 0, operation_);
}

ScratchFile::~ScratchFile() {
  if (memory_) ::munmap(memory_, size_);
}

void ScratchFile::append(std::span<const std::byte> bytes) {
  write_all(file_, bytes, operation_);
  size_ += bytes.size();
}

std::span<const std::byte> ScratchFile::map() {
  if (size_ == 0) return {};
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.number(), 0);
  check_call(memory != MAP_FAILED, operation_);
  memory_ = memory;
  ::madvise(memory_, size_, MADV_RANDOM);  // blocks are read in random order, so reading ahead is useless
  return {static_cast<const std::byte*>(memory_), size_};
}

AppendedFile::AppendedFile(const std::string& path)
    : operation_("write " + path), file_(open_file(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK)) {
  if (S_ISREG(status_of(file_, operation_).st_mode))
    check(try_flock(file_, operation_), operation_, "somebody else is writing it");
}

u64 AppendedFile::size() const { return static_cast<u64>(status_of(file_, operation_).st_size); }

std::string AppendedFile::read(u64 offset, size_t count) const { return read_part(file_, offset, count, operation_); }

void AppendedFile::clear() {
  if (size() > 0) empty(file_, operation_);  // a device cannot be emptied, and has nothing
}

void AppendedFile::append(std::string_view text) {
  write_all(file_, std::as_bytes(std::span(text.data(), text.size())), operation_);
}

void AppendedFile::close() { check_call(file_.close(), operation_); }

void make_folder(const std::string& path) {
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode)) return;
  const std::string name = path.substr(0, path.find_last_not_of('/') + 1), operation = "make the folder " + name;
  check_call(is_there || errno == ENOENT || errno == ENOTDIR, operation);  // else no folder around it would help
  if (!is_there) make_folder(folder_of(name));
  const bool made = retry([&] { return ::mkdir(name.c_str(), folder_mode); }) == 0;
  const int problem = made ? 0 : errno;
  if (problem != EEXIST || !is_folder(name)) {  // unless another process has just made it
    errno = problem;
    check_call(made, operation);
  }
  flush_directory(name, operation, "made");
}

void remove_file(const std::string& path) {
  const std::string operation = "remove " + path;
  if (::unlink(path.c_str()) == 0) return flush_directory(path, operation, "removed");
  check_call(errno == ENOENT, operation);
}

void replace_file(const std::string& given_path, std::span<const std::span<const std::byte>> parts) {
  const std::string path = target_of(given_path);
  Replacement replacement(path);
  const std::string& operation = replacement.operation;
  replacement.lock_holder.emplace(::fcntl(replacement.file.number(), F_DUPFD_CLOEXEC, 0));
  check_call(replacement.lock_holder->number() >= 0, operation);
  for (const auto& part : parts) write_all(replacement.file, part, operation);
  check_call(retry([&] { return ::fsync(replacement.file.number()); }) == 0, operation);
  check_call(replacement.file.close(), operation);
  check_call(::rename(replacement.temporary_path.c_str(), path.c_str()) == 0, operation);
  replacement.temporary.ours = false;
  flush_directory(path, operation, "written");
}

void check_replaceable(const std::string& path, u64 bytes) {
  const Replacement replacement(target_of(path));
  const int error = ::posix_fallocate(replacement.file.number(), 0, static_cast<off_t>(std::max<u64>(bytes, 1)));
  // Other errors only mean that this file system cannot reserve the space in advance.
  check(error != ENOSPC && error != EFBIG && error != EDQUOT, replacement.operation, bytes,
        " bytes do not fit there: ", std::generic_category().message(error));
}

u64 room_needed(std::span<const PlannedFile> files, bool again) {
  i64 used = 0, most = 0;  // bytes more than now
  std::vector<u64> standing;
  for (const PlannedFile& file : files) standing.push_back(size_of_regular(file.path));
  for (int round = 0; round < (again ? 2 : 1); ++round) {
    for (size_t i = 0; i < files.size(); ++i) {
      used += static_cast<i64>(files[i].bytes);  // the second file
      most = std::max(most, used);
      used -= static_cast<i64>(standing[i]);  // takes the name of the first
      standing[i] = files[i].bytes;
    }
  }
  return static_cast<u64>(most);
}

void check_room(std::span<const PlannedFile> files, bool again) {
  if (files.empty()) return;
  const u64 needed = room_needed(files, again);
  const std::optional<u64> there = free_bytes(target_of(files.front().path));
  check(!there || needed <= *there, "write " + files.front().path, needed,
        " bytes do not fit there: ", there.value_or(0),
        " are free (while a file is replaced, its old and new contents both take space)");
  for (const PlannedFile& file : files) check_replaceable(file.path, file.bytes);
}

FileLock::FileLock(const std::string& path, const std::string& owner) : path_(path) {
  const std::string operation = "lock " + path;
  for (;;) {
    file_.emplace(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK));
    check_call(file_->number() >= 0, operation);
    const bool ours = try_flock(*file_, operation);
    if (ours && !is_named(*file_, path)) continue;  // its holder has just removed it: the name is free
    const std::string text = read_lock(*file_, operation);
    check(text.empty() || text.starts_with(lock_mark), operation, "another file has this name");
    if (ours) break;
    holder_ = text.empty() ? "another process" : text;
    file_.reset();
    return;
  }
  const std::string text = std::string(lock_mark) + std::to_string(::getpid()) + ", " + owner + "\n";
  Temporary unfinished{path, true};
  empty(*file_, operation);
  write_all(*file_, std::as_bytes(std::span(text)), operation);
  unfinished.ours = false;
}

FileLock::~FileLock() {
  if (file_) ::unlink(path_.c_str());  // before the lock is given back, so that nobody else's is removed
}

}  // namespace orrery
