// Chapter 9. Tests of files: whole or not at all, temporary ones, and every refusal with its reason.
#include "core/files/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "tests/core/file_size_limit.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;

namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void replace(const std::string& path, const std::string& text) {
  const std::vector<std::span<const std::byte>> parts{as_bytes(text)};
  replace_file(path, parts);
}

// The error of every flock while it is not 0: what a file system without locks answers.
int flock_error = 0;

}  // namespace

// Takes the place of the C library's in this program.
extern "C" int flock(int file, int operation) noexcept {
  if (flock_error == 0) return static_cast<int>(::syscall(SYS_flock, file, operation));
  errno = flock_error;
  return -1;
}

TEST_CASE("replace_file writes the parts in order and leaves nothing beside the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "a", first = "one ", second = std::string(100000, 'x'), third = "";
  const std::vector<std::span<const std::byte>> parts{as_bytes(first), as_bytes(second), as_bytes(third)};
  replace_file(path, parts);
  CHECK(contents(path) == first + second);
  replace(path, "shorter");
  CHECK(contents(path) == "shorter");
  CHECK(folder.count() == 1);
}

TEST_CASE("a file name without a folder stands in the current one") {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  replace("plain", "text");
  std::filesystem::current_path(before);
  CHECK(contents(folder / "plain") == "text");
}

TEST_CASE("a temporary file left by a killed program is not an obstacle") {
  const TemporaryFolder folder;
  set_contents(folder / "a.tmp", "half of a longer old text");
  replace(folder / "a", "new");
  CHECK(contents(folder / "a") == "new");
  CHECK(folder.count() == 1);
}

TEST_CASE("a symbolic link stays, and what it leads to is replaced") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  set_contents(folder / "inner/a", "old");
  std::filesystem::create_symlink("inner/a", folder / "link");
  replace(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(contents(folder / "inner/a") == "new");
  CHECK(folder.count() == 2);
  std::filesystem::create_symlink("nowhere", folder / "broken");
  replace(folder / "broken", "new");
  CHECK_FALSE(std::filesystem::is_symlink(folder / "broken"));
  CHECK(contents(folder / "broken") == "new");
}

TEST_CASE("a file is removed for good, and one that is not there need not be") {
  const TemporaryFolder folder;
  set_contents(folder / "a", "text");
  remove_file(folder / "a");
  CHECK(folder.count() == 0);
  CHECK(error_of([&] { remove_file(folder / "a"); }) == "");
  std::filesystem::create_directory(folder / "a");
  CHECK(error_of([&] { remove_file(folder / "a"); }) == "remove " + (folder / "a") + ": Is a directory");
}

TEST_CASE("a folder is made with those around it, and one that is there stays with its files") {
  const TemporaryFolder folder;
  for (const std::string name : {"a/b/c", "a/b/c/", "a/b/c", "a/d//", "/"}) {
    CAPTURE(name);
    CHECK(error_of([&] { make_folder(folder / ""); }) == "");
    CHECK(error_of([&] { make_folder(folder.path().string() + "/" + name); }) == "");
    CHECK(std::filesystem::is_directory(folder.path().string() + "/" + name));
    set_contents(folder / "a/b/c/file", "text");
  }
  CHECK(contents(folder / "a/b/c/file") == "text");
  const std::string file = folder / "a/b/c/file";
  for (const std::string& blocked : {file, file + "/d", file + "/d/e"})
    CHECK(error_of([&] { make_folder(blocked); }) == "make the folder " + file + ": File exists");
  const std::string long_name(5000, 'x'), far = folder / "a";
  CHECK(error_of([&] { make_folder(far + "/" + long_name); }).ends_with(": File name too long"));
  std::string deep;
  for (int i = 0; i < 60'000; ++i) deep += "a/";
  CHECK(error_of([&] { make_folder(deep); }).ends_with(": File name too long"));
}

TEST_CASE("the file keeps its permissions") {
  const TemporaryFolder folder;
  replace(folder / "a", "old");
  REQUIRE(::chmod((folder / "a").c_str(), 0600) == 0);
  replace(folder / "a", "new");
  struct stat status {};
  REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
}

TEST_CASE("when the disk takes no more, the old file is intact and the error says so") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  replace(path, "old");
  std::string error;
  {
    const small::FileSizeLimit limit(5000);
    error = error_of([&] { replace(path, std::string(20000, 'x')); });
  }
  CHECK(error == "write " + path + ": File too large");
  CHECK(contents(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("an appended file keeps what it has, grows at its end, and belongs to one at a time") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  {
    AppendedFile file(path);
    CHECK(file.size() == 0);
    file.append("one\n");
    file.append("two\n");
    CHECK(file.size() == 8);
    CHECK(file.read(4, 3) == "two");
    CHECK(file.read(4, 100) == "two\n");
    CHECK(file.read(100, 1) == "");
    CHECK(error_of([&] { AppendedFile{path}; }) == "write " + path + ": somebody else is writing it");
    file.close();
  }
  {
    AppendedFile more(path);
    more.append("three\n");
    CHECK(contents(path) == "one\ntwo\nthree\n");
    more.clear();
    more.append("anew\n");
  }
  CHECK(contents(path) == "anew\n");
  const std::string none = folder / "none/log";
  CHECK(error_of([&] { AppendedFile{none}; }) == "write " + none + ": No such file or directory");
  AppendedFile full("/dev/full");
  CHECK(error_of([&] { full.append("x"); }) == "write /dev/full: No space left on device");
}

TEST_CASE("what the system reports is an error of its own kind") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(InputFile{folder / "none"}, SystemError);
  set_contents(folder / "a", "text");
  const InputFile file(folder / "a");
  std::string part(5, ' ');
  std::string kind = "none";
  try {
    file.read(0, std::as_writable_bytes(std::span(part)));
  } catch (const SystemError&) { kind = "of the system"; } catch (const Error&) {
    kind = "another";
  }
  CHECK(kind == "another");  // it ends early, which the system finds nothing wrong with
}

TEST_CASE("two who write one file at once are told so") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  replace(path, "old");
  const Descriptor other(::open((path + ".tmp").c_str(), O_WRONLY | O_CREAT, 0600));
  REQUIRE(::flock(other.number(), LOCK_EX) == 0);
  CHECK(error_of([&] { replace(path, "new"); }) == "write " + path + ": somebody else is writing " + path + ".tmp");
  CHECK(contents(path) == "old");
}

TEST_CASE("what cannot be written is an error that names it and says why") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "inner");
  const std::string none = folder / "none/a";
  CHECK(error_of([&] { replace(none, "x"); }) ==
        "write " + none + ": cannot create " + none + ".tmp: No such file or directory");
  CHECK(error_of([&] { replace(folder / "inner", "x"); }) == "write " + (folder / "inner") + ": is a directory");
  CHECK(error_of([] { replace("/dev/null", "x"); }) == "write /dev/null: is not a regular file");
  std::filesystem::create_directory(folder.path() / "b.tmp");
  CHECK(error_of([&] { replace(folder / "b", "x"); }) != "");
  CHECK(std::filesystem::is_directory(folder / "b.tmp"));
  if (::geteuid() != 0) {  // root may write everywhere
    ::chmod((folder / "inner").c_str(), 0500);
    CHECK(error_of([&] { replace(folder / "inner/a", "x"); }).ends_with("Permission denied"));
    ::chmod((folder / "inner").c_str(), 0700);
  }
}

TEST_CASE("InputFile reads any part, and says when there is less") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, "0123456789");
  const InputFile file(path);
  CHECK(file.size() == 10);
  std::string part(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(part)));
  CHECK(part == "3456");
  CHECK(error_of([&] { file.read(8, std::as_writable_bytes(std::span(part))); }) ==
        "read " + path + ": ends early, at byte 10");
}

TEST_CASE("what cannot be read is an error that names it and says why") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe", none = folder / "none";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { InputFile{none}; }) == "read " + none + ": No such file or directory");
  CHECK(error_of([&] { InputFile{folder.path().string()}; }) == "read " + folder.path().string() + ": is a directory");
  CHECK(error_of([&] { InputFile{pipe}; }) == "read " + pipe + ": is not a regular file");
}

// To open some devices does something, and others never end.
TEST_CASE("promise 21: special files are refused at once, by name, and never opened") {
  const TemporaryFolder folder;
  const std::string socket = folder / "socket", pipe = folder / "pipe", link = folder / "link";
  const Descriptor server(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(socket.size() < sizeof address.sun_path);
  socket.copy(address.sun_path, socket.size());
  REQUIRE(::bind(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", link);
  const Descriptor watch(::inotify_init1(IN_NONBLOCK));
  REQUIRE(::inotify_add_watch(watch.number(), pipe.c_str(), IN_OPEN) >= 0);
  std::array<char, 4096> events;
  const auto was_opened = [&] { return ::read(watch.number(), events.data(), events.size()) > 0; };
  for (const std::string& path :
       {socket, pipe, link, std::string("/dev/zero"), std::string("/dev/full"), std::string("/dev/null")}) {
    if (path.starts_with("/dev/") && !std::filesystem::exists(path)) continue;
    CHECK(error_of([&] { InputFile{path}; }) == "read " + path + ": is not a regular file");
    CHECK(error_of([&] { read_safetensors(path); }) == "read " + path + ": is not a regular file");
  }
  CHECK(error_of([&] { read_safetensors(folder / ""); }) ==
        "read " + (folder / "model.safetensors") + ": No such file or directory");
  CHECK_FALSE(was_opened());
  const Descriptor opened(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  CHECK(was_opened());  // so it would have been seen
}

TEST_CASE("check_replaceable refuses what replace_file would, and leaves everything as it is") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  check_replaceable(path, 100);
  CHECK(folder.count() == 0);
  set_contents(path, "old");
  check_replaceable(path, 100);
  CHECK(contents(path) == "old");
  CHECK(folder.count() == 1);
  CHECK(error_of([&] { check_replaceable("/dev/full", 1); }) == "write /dev/full: is not a regular file");
  CHECK(error_of([&] { check_replaceable(folder / "none/a", 1); }).ends_with("No such file or directory"));
  const small::FileSizeLimit limit(1000);
  CHECK(error_of([&] { check_replaceable(path, 2000); }) ==
        "write " + path + ": 2000 bytes do not fit there: File too large");
  CHECK(error_of([&] { check_replaceable(path, 1000); }) == "");
  CHECK(contents(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("room_needed counts every file and, while it is replaced, its twin") {
  const TemporaryFolder folder;
  const std::vector<PlannedFile> files{{folder / "a", 100}, {folder / "b", 500}};
  CHECK(room_needed(files, false) == 600);
  CHECK(room_needed(files, true) == 1100);  // a and b stand, and b once more
  set_contents(folder / "b", std::string(500, 'x'));
  CHECK(room_needed(files, false) == 600);  // the old b stands until the new one is whole
  CHECK(room_needed(files, true) == 600);
  set_contents(folder / "a", std::string(100, 'x'));
  CHECK(room_needed(files, true) == 500);
  CHECK(room_needed({}, true) == 0);
}

TEST_CASE("check_room refuses what the disk cannot hold together, and each file that cannot be replaced") {
  const TemporaryFolder folder;
  constexpr u64 huge = u64{1} << 60;
  const std::vector<PlannedFile> fits{{folder / "a", 100}, {folder / "b", 500}};
  CHECK(error_of([&] { check_room(fits, true); }) == "");
  const std::vector<PlannedFile> too_many{{folder / "a", huge}, {folder / "b", huge}};
  CHECK(error_of([&] {
          check_room(too_many, true);
        }).starts_with("write " + (folder / "a") + ": 3458764513820540928 bytes do not fit there"));
  const small::FileSizeLimit limit(300);
  CHECK(error_of([&] { check_room(fits, true); }) ==
        "write " + (folder / "b") + ": 500 bytes do not fit there: File too large");
  CHECK(folder.count() == 0);
}

TEST_CASE("a lock is held by one at a time, says whose it is, and is gone at the end") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.lock", owner = "process " + std::to_string(::getpid()) + ", the first";
  {
    const FileLock first(path, "the first"), second(path, "the second");
    CHECK(first.held());
    CHECK(contents(path) == owner + "\n");
    CHECK_FALSE(second.held());
    CHECK(second.holder() == owner);
  }
  CHECK(folder.count() == 0);
  CHECK(FileLock(path, "the next").held());
}

TEST_CASE("a lock that a killed process left is taken over, and no other file is") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.lock";
  set_contents(path, "process 1, orrery toy --save with a longer command than the next one\n");
  {
    const FileLock lock(path, "b");
    CHECK(lock.held());
    CHECK(contents(path) == "process " + std::to_string(::getpid()) + ", b\n");
  }
  set_contents(path, std::string(40, '\0'));  // what a power failure may leave
  CHECK(FileLock(path, "c").held());
  CHECK_FALSE(std::filesystem::exists(path));
  set_contents(path, "[[package]]\n");
  CHECK(error_of([&] { const FileLock lock(path, "b"); }) == "lock " + path + ": another file has this name");
  CHECK(contents(path) == "[[package]]\n");
}

TEST_CASE("where the file system has no locks files are written without one, and other failures are told") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    CAPTURE(error);
    flock_error = error;
    const std::string written = error_of([&] { replace(path, "new"); });
    const std::string locked = error_of([&] {
      const FileLock lock(folder / "model.lock", "owner");
      check(lock.held(), "test", "not held");
    });
    flock_error = 0;
    CHECK(written == "");
    CHECK(locked == "");
  }
  CHECK(contents(path) == "new");
  flock_error = EBADF;
  const std::string written = error_of([&] { replace(path, "newer"); });
  const std::string locked = error_of([&] { const FileLock lock(folder / "model.lock", "owner"); });
  flock_error = 0;
  CHECK(written == "write " + path + ": cannot be locked: Bad file descriptor");
  CHECK(locked == "lock " + (folder / "model.lock") + ": cannot be locked: Bad file descriptor");
  CHECK(contents(path) == "new");
}

TEST_CASE("a temporary file has what was appended, and no name") {
  const TemporaryFolder folder;
  const TemporaryDirectory directory(folder / "");
  ScratchFile file, empty;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string part = "part " + std::to_string(i) + "\n";
    file.append(std::as_bytes(std::span(part)));
    expected += part;
  }
  const std::span<const std::byte> mapped = file.map();
  REQUIRE(mapped.size() == expected.size());
  CHECK(std::memcmp(mapped.data(), expected.data(), expected.size()) == 0);
  CHECK(empty.map().empty());
  CHECK(folder.count() == 0);
}

TEST_CASE("a temporary file that cannot be written names its folder") {
  const TemporaryFolder folder;
  const TemporaryDirectory directory(folder / "none");
  const std::string error = small::error_of([] { ScratchFile file; });
  CHECK(small::contains(error, "write a temporary file in " + (folder / "none")));
  CHECK(small::contains(error, "set TMPDIR to use another folder"));
  CHECK(small::contains(error, "No such file or directory"));
}
