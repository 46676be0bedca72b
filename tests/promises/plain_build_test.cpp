// Chapter 8. Tests that a program compiled with plain flags gets the library's bits.
#include <doctest/doctest.h>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

namespace {
constexpr size_t hash_digits = 16;  // of the fingerprint, the only line that plain_user.cpp prints
}  // namespace

// Both programs are plain_user.cpp: one compiled as by a user who knows nothing of our options, with -O0 and for any
// CPU; the other with the options of the library. If the library's arithmetic were compiled in their files too, the
// linker would keep the first copy, theirs, and the two programs would differ.
TEST_CASE("promise 1: a user's program, compiled with plain flags, gets the bits of the library") {
  const program::Result plain = program::shell("'" ORRERY_PLAIN_USER "'"),
                        own = program::shell("'" ORRERY_OWN_USER "'");
  CHECK(plain.exit_code == 0);
  CHECK(plain.text.size() == hash_digits + 1);
  CHECK(plain.text == own.text);
}

// The program does not set the number of threads, so OpenMP's environment decides. A loop once got fewer threads than
// it had asked for, and its products waited for ever.
TEST_CASE("promise 1: whatever OpenMP's environment says of threads, the library's bits are the same") {
  const std::string usual = program::shell("'" ORRERY_PLAIN_USER "'").text;
  REQUIRE(usual.size() == hash_digits + 1);
  for (const std::string variables :
       {"OMP_DYNAMIC=true", "OMP_DYNAMIC=true OMP_NUM_THREADS=4", "OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=4",
        "OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=4", "OMP_NUM_THREADS=3"}) {
    CAPTURE(variables);
    const program::Result result = program::shell(variables + " timeout 60 '" ORRERY_PLAIN_USER "'");
    CHECK(result.exit_code == 0);
    CHECK(result.text == usual);
  }
}

namespace {

const std::string short_training = "toy --steps 2 --hash";

void run_command(const std::string& command) {
  const program::Result result = program::shell(command + " 2>&1");
  CAPTURE(result.text);
  REQUIRE(result.exit_code == 0);
}

// Of a short training by the program that `command` starts.
std::string hash_by(const std::string& command, const std::string& options = "") {
  return program::hash_in(program::shell(command + " " + short_training + options + " 2>/dev/null").text);
}

// The library and the program for every CPU, in `build`, and a user's program that takes the library from there.
void build_for_every_cpu(const std::string& build, const std::string& user) {
  run_command("cmake -S '" ORRERY_SOURCE_DIR "' -B '" + build + "' -G Ninja -D ORRERY_NATIVE=OFF -D ORRERY_TESTS=OFF" +
              " -D ORRERY_CALLERS=-O0 -D CMAKE_INSTALL_LIBDIR=lib");  // -O0: quicker to build, and without arithmetic
  run_command("cmake --build '" + build + "'");
  run_command("g++ -std=c++20 -fopenmp -I '" ORRERY_SOURCE_DIR "' '" ORRERY_SOURCE_DIR
              "/tests/promises/plain_user.cpp' -o '" +
              user + "' -L '" + build + "' -lorrery -Wl,-rpath,'" + build + "'");
}

#if defined(__x86_64__)  // elsewhere there is only one library

// Runs both with the libraries of these levels, and with the one for any CPU.
struct AtLevels {
  std::string build, user, linker = "/lib64/ld-linux-x86-64.so.2 --glibc-hwcaps-mask ", environment{};

  // Which library was taken, and its bits.
  std::string library(const std::string& levels) const {
    return program::shell(environment + "LD_DEBUG=libs " + linker + levels + " '" + user +
                          "' 2>&1 | grep -e 'init:.*liborrery' -e '^[0-9a-f]*$'")
        .text;
  }
  std::string trained_hash(const std::string& levels, const std::string& options = "") const {
    return hash_by(environment + linker + levels + " '" + build + "/orrery'", options);
  }
};

void check_levels(const AtLevels& at, const std::string& own) {
  const std::string own_hash = program::trained_hash(short_training), bf16 = " --precision bf16",
                    own_bf16_hash = program::trained_hash(short_training + bf16);
  const std::pair<std::string, bool> levels[] = {{"x86-64-v4", __builtin_cpu_supports("avx512f")},
                                                 {"x86-64-v3", __builtin_cpu_supports("avx2")}};
  for (const auto& one : levels) {
    CAPTURE(one.first);
    const std::string text = at.library(one.first);
    CHECK(program::contains(text, one.first) == one.second);  // a library that this CPU cannot run is not taken
    if (one.second) CHECK(text.ends_with("\n" + own));
    if (one.second) CHECK(at.trained_hash(one.first) == own_hash);
    if (one.second) CHECK(at.trained_hash(one.first, bf16) == own_bf16_hash);
  }
  if (__builtin_cpu_supports("avx2")) {  // an OpenBLAS that takes this CPU for the oldest one: no product uses it
    AtLevels narrow = at;
    narrow.environment = "OPENBLAS_CORETYPE=Prescott ";
    const std::string own_narrow = program::shell(narrow.environment + "'" ORRERY_OWN_USER "'").text;
    CHECK(own_narrow.size() == hash_digits + 1);
    for (const auto& [level, there] : levels)
      if (there) CHECK(narrow.library(level).ends_with("\n" + own_narrow));
    CHECK(narrow.trained_hash("x86-64-v3") == hash_by(narrow.environment + program::quoted_program));
  }
  const std::string plain = at.library("none");
  CHECK_FALSE(program::contains(plain, "glibc-hwcaps"));
  CHECK_FALSE(plain.ends_with("\n" + own));
  CHECK(program::line(plain, -1).size() == hash_digits);
}

// On CPUs without AVX; there OpenBLAS has other kernels, and other bits. kvm64 has hardly more than every x86-64 CPU.
// (qemu64 calls itself an AMD, and OpenBLAS then runs 3DNow instructions, which it lacks.)
void check_old_cpus(const AtLevels& at) {
  const size_t line_length = program::line(at.library("none"), -1).size() + 1;
  for (const std::string cpu : {"Nehalem", "kvm64"}) {
    CAPTURE(cpu);
    const std::string on_cpu = "timeout 600 qemu-x86_64 -cpu " + cpu + " '";
    const program::Result old = program::shell(on_cpu + at.user + "'");
    CHECK(old.exit_code == 0);
    CHECK(old.text.size() == line_length);
    for (const std::string precision : {"f32", "bf16"}) {
      const program::Result trained = program::shell(on_cpu + at.build + "/orrery' " + program::quick_toy +
                                                     "--threads 1 --hash --precision " + precision + " 2>/dev/null");
      CHECK(trained.exit_code == 0);
      CHECK(program::hash_in(trained.text) != "");
    }
  }
}

#endif

// The installed copy: its program, a user's program that pkg-config links, and a project that uses find_package.
void check_installed(const std::string& build, const TemporaryFolder& folder, const std::string& own) {
  const std::string copy = folder / "a copy", installed = folder / "installed", outside = folder / "outside";
  run_command("cmake --install '" + build + "' --prefix '" + copy + "'");
  CHECK(hash_by("'" + copy + "/bin/orrery'") == program::trained_hash(short_training));
  run_command("cmake -S '" ORRERY_SOURCE_DIR "/tests/outside' -B '" + outside +
              "' -G Ninja -D CMAKE_CXX_COMPILER=g++ -D CMAKE_PREFIX_PATH='" + copy + "'");
  run_command("cmake --build '" + outside + "'");
  const std::string bits = program::shell("'" ORRERY_OUTSIDE_PROGRAM "'").text;
  CHECK(bits.size() > hash_digits);
  CHECK(program::shell("'" + outside + "/outside'").text == bits);
  if (!tools::are_there({"pkg-config"})) return;
  // It calls kernels of headers that are not installed, too.
  run_command("eval \"g++ -std=c++20 -idirafter '" ORRERY_SOURCE_DIR "' '" ORRERY_SOURCE_DIR
              "/tests/promises/plain_user.cpp' -o '" +
              installed + "' $(PKG_CONFIG_PATH='" + copy + "/lib/pkgconfig' pkg-config --cflags --libs orrery)\"");
  CHECK(program::shell("'" + installed + "'").text == own);
}

// Debian's package, unpacked.
void check_package(const std::string& build, const TemporaryFolder& folder) {
  if (!tools::are_there({"cpack", "dpkg-deb", "dpkg-shlibdeps", "file"})) return;
  const std::string made = folder / "package", unpacked = folder / "unpacked";
  run_command("cpack --config '" + build + "/CPackConfig.cmake' -B '" + made + "'");
  run_command("dpkg-deb --extract '" + made + "'/*.deb '" + unpacked + "'");
  CHECK(hash_by("'" + unpacked + "/usr/bin/orrery'") == program::trained_hash(short_training));
}

}  // namespace

// -D ORRERY_NATIVE=OFF builds three libraries. The dynamic linker takes the best one that the CPU can run and that the
// linker's option --glibc-hwcaps-mask allows. Without AVX2 and FMA, a multiplication and an addition are rounded one by
// one, so the library for any CPU has bits of its own. What is installed holds the same libraries, and so does Debian's
// package.
TEST_CASE("long: promise 1: library and program for every CPU have this machine's own bits with AVX-512 and AVX2") {
  const std::string own = program::shell("'" ORRERY_OWN_USER "'").text;
  const TemporaryFolder folder;
  const std::string build = folder / "build", user = folder / "user";
  build_for_every_cpu(build, user);
#if defined(__x86_64__)
  const AtLevels at{.build = build, .user = user};
  check_levels(at, own);
  if (tools::are_there({"qemu-x86_64"})) check_old_cpus(at);
#endif
  check_installed(build, folder, own);
  check_package(build, folder);
}
