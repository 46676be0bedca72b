// Chapter 9. A library to preload (LD_PRELOAD): system calls on the files of one folder fail as asked, or are recorded.
//
// The environment of the program says what happens:
//   ORRERY_FAULT_FOLDER   the folder, as an absolute path: calls on other files are passed on, and not counted
//   ORRERY_FAULT_RECORD   a file elsewhere that gets a line for each call
//   ORRERY_FAULT_CALL     which calls fail: open, write, ..., or any
//   ORRERY_FAULT_AT       the first one that fails, counted from 1
//   ORRERY_FAULT_TIMES    how many fail from there on
//   ORRERY_FAULT_ERROR    how: the number of an error; "short", half of the bytes are written or read; "kill", the
//                         program dies
//   ORRERY_CLOCK_AHEAD    a file with a number of seconds: the machine's clock (CLOCK_BOOTTIME) is ahead by so many
// A line of the record, with tabs between its parts: CALL, then "done" or the number of the error, then what the call
// was about (`describe` below). tests/faults/trained_programs.h reads it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

namespace {

// The C library's own function of this name.
template <class Function> Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

long number_in(const char* name) { return std::strtol(variable(name).c_str(), nullptr, 10); }

// What the environment asks for, the calls so far, and the open files of the folder.
struct Plan {
  std::string folder = variable("ORRERY_FAULT_FOLDER"), call = variable("ORRERY_FAULT_CALL"),
              error = variable("ORRERY_FAULT_ERROR"), record = variable("ORRERY_FAULT_RECORD");
  long at = number_in("ORRERY_FAULT_AT"), times = number_in("ORRERY_FAULT_TIMES"), calls = 0;
  std::map<int, std::string> open_files;
  std::mutex mutex;
};

// Never destroyed: destructors of the program make system calls until its very end.
Plan& plan() {
  static Plan* const the = std::make_unique<Plan>().release();
  return *the;
}

bool is_seen(const char* path) {
  const std::string_view folder = plan().folder, name = path;
  return !folder.empty() && name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
}

bool is_seen(int file) {
  const std::lock_guard guard(plan().mutex);
  return plan().open_files.contains(file);
}

void opened(int file, const std::string& path) {
  const std::lock_guard guard(plan().mutex);
  if (file >= 0) plan().open_files[file] = path;
}

enum class Fault { none, error, half };

// Counts a call. Sets errno if it is to fail.
Fault fault_of(std::string_view call) {
  const std::lock_guard guard(plan().mutex);
  Plan& p = plan();
  if (p.call != call && p.call != "any") return Fault::none;
  ++p.calls;
  if (p.calls < p.at || p.calls >= p.at + p.times) return Fault::none;
  if (p.error == "kill") ::kill(::getpid(), SIGKILL);
  if (p.error == "short") return Fault::half;
  errno = static_cast<int>(number_in("ORRERY_FAULT_ERROR"));
  return Fault::error;
}

void record(std::string_view call, bool ok, const std::string& about) {
  const int error = errno;
  if (!plan().record.empty()) {
    const std::lock_guard guard(plan().mutex);
    const std::string line =
        std::string(call) + '\t' + (ok ? std::string("done") : std::to_string(error)) + '\t' + about + '\n';
    const int file = original<int(const char*, int, ...)>("open")(plan().record.c_str(),
                                                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t written =
        original<ssize_t(int, const void*, size_t)>("write")(file, line.data(), line.size());
    original<int(int)>("close")(file);
  }
  errno = error;
}

// The parts of a line's end.
template <class... Parts> std::string describe(const Parts&... parts) {
  std::ostringstream text;
  std::string_view between;
  ((text << between << parts, between = "\t"), ...);
  return text.str();
}

std::string hexadecimal(const void* bytes, size_t count) {
  std::string digits;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

// A call that returns -1 and sets errno when it fails.
template <class Run> auto attempt(std::string_view call, const std::string& about, const Run& run) -> decltype(run()) {
  using Result = decltype(run());
  const Result result = fault_of(call) == Fault::none ? run() : static_cast<Result>(-1);
  record(call, result >= 0, about);
  return result;
}

int open_seen(const char* path, int flags, mode_t mode) {
  if (!is_seen(path)) return original<int(const char*, int, ...)>("open")(path, flags, mode);
  const int file =
      fault_of("open") == Fault::none ? original<int(const char*, int, ...)>("open")(path, flags, mode) : -1;
  opened(file, path);
  record("open", file >= 0, describe(file, path, (flags & O_TRUNC) != 0 ? "empty" : "as it is"));
  return file;
}

mode_t mode_in(int flags, va_list rest) { return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = original<int(clockid_t, timespec*)>("clock_gettime")(clock, now);
  const char* ahead = clock == CLOCK_BOOTTIME ? std::getenv("ORRERY_CLOCK_AHEAD") : nullptr;
  if (ahead == nullptr) return result;
  long seconds = 0;
  if (std::FILE* file = std::fopen(ahead, "r")) {
    if (std::fscanf(file, "%ld", &seconds) == 1) now->tv_sec += seconds;
    std::fclose(file);
  }
  return result;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_seen(path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));  // the same on 64-bit systems

int mkostemp(char* path, int flags) {
  const auto run = original<int(char*, int)>("mkostemp");
  if (!is_seen(path)) return run(path, flags);
  const bool fails = fault_of("open") != Fault::none;
  if (fails) std::copy_n("filled", 6, path + std::strlen(path) - 6);  // the X are used up, as by the system
  const int file = fails ? -1 : run(path, flags);
  opened(file, path);
  record("open", file >= 0, describe(file, path, "as it is"));
  return file;
}

int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const auto run = original<int(int, int, ...)>("fcntl");
  if (command != F_DUPFD_CLOEXEC || !is_seen(file)) return run(file, command, argument);
  const int copy = fault_of("dup") == Fault::none ? run(file, command, argument) : -1;
  opened(copy, "");
  record("dup", copy >= 0, describe(file, copy));
  return copy;
}

ssize_t write(int file, const void* bytes, size_t count) {
  const auto run = original<ssize_t(int, const void*, size_t)>("write");
  if (!is_seen(file)) return run(file, bytes, count);
  const Fault fault = fault_of("write");
  const int error = errno;
  const bool appends = (::fcntl(file, F_GETFL) & O_APPEND) != 0;
  const off_t offset = ::lseek(file, 0, appends ? SEEK_END : SEEK_CUR);
  errno = error;
  const ssize_t written = fault == Fault::error ? -1 : run(file, bytes, fault == Fault::half ? (count + 1) / 2 : count);
  record("write", written >= 0,
         describe(file, offset, hexadecimal(bytes, static_cast<size_t>(written < 0 ? 0 : written))));
  return written;
}

ssize_t pread(int file, void* bytes, size_t count, off_t offset) {
  const auto run = original<ssize_t(int, void*, size_t, off_t)>("pread");
  if (!is_seen(file)) return run(file, bytes, count, offset);
  const Fault fault = fault_of("read");
  const ssize_t got =
      fault == Fault::error ? -1 : run(file, bytes, fault == Fault::half ? (count + 1) / 2 : count, offset);
  record("read", got >= 0, describe(file));
  return got;
}

int fsync(int file) {
  const auto run = original<int(int)>("fsync");
  return is_seen(file) ? attempt("fsync", describe(file), [&] { return run(file); }) : run(file);
}

// The file is closed even if that fails, as on Linux.
int close(int file) {
  const auto run = original<int(int)>("close");
  if (!is_seen(file)) return run(file);
  {
    const std::lock_guard guard(plan().mutex);
    plan().open_files.erase(file);
  }
  const int closed = run(file);
  const int result = fault_of("close") == Fault::none ? closed : -1;
  record("close", result == 0, describe(file));
  return result;
}

int rename(const char* from, const char* to) noexcept {
  const auto run = original<int(const char*, const char*)>("rename");
  return is_seen(to) ? attempt("rename", describe(from, to), [&] { return run(from, to); }) : run(from, to);
}

int unlink(const char* path) noexcept {
  const auto run = original<int(const char*)>("unlink");
  return is_seen(path) ? attempt("unlink", describe(path), [&] { return run(path); }) : run(path);
}

int remove(const char* path) noexcept {
  const auto run = original<int(const char*)>("remove");
  return is_seen(path) ? attempt("unlink", describe(path), [&] { return run(path); }) : run(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  const auto run = original<int(const char*, mode_t)>("mkdir");
  return is_seen(path) ? attempt("mkdir", describe(path), [&] { return run(path, mode); }) : run(path, mode);
}

int ftruncate(int file, off_t size) noexcept {
  const auto run = original<int(int, off_t)>("ftruncate");
  return is_seen(file) ? attempt("truncate", describe(file, size), [&] { return run(file, size); }) : run(file, size);
}

int fchmod(int file, mode_t mode) noexcept {
  const auto run = original<int(int, mode_t)>("fchmod");
  return is_seen(file) ? attempt("chmod", describe(file), [&] { return run(file, mode); }) : run(file, mode);
}

int flock(int file, int operation) noexcept {
  const auto run = original<int(int, int)>("flock");
  return is_seen(file) ? attempt("lock", describe(file), [&] { return run(file, operation); }) : run(file, operation);
}

int posix_fallocate(int file, off_t offset, off_t size) {
  const auto run = original<int(int, off_t, off_t)>("posix_fallocate");
  if (!is_seen(file)) return run(file, offset, size);
  const int error = fault_of("allocate") == Fault::none ? run(file, offset, size) : errno;
  errno = error;
  record("allocate", error == 0, describe(file, offset + size));
  return error;
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  const auto run = original<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (file < 0 || !is_seen(file)) return run(at, size, protection, flags, file, offset);
  void* const memory = fault_of("mmap") == Fault::none ? run(at, size, protection, flags, file, offset) : MAP_FAILED;
  record("mmap", memory != MAP_FAILED, describe(file));
  return memory;
}

}  // extern "C"
