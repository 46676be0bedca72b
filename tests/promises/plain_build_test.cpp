// Chapter 8. Tests that a program compiled with plain flags gets the library's bits.
#include <doctest/doctest.h>

#include "tests/apps/install/tools.h"
#include "tests/apps/toy/toy_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

// Both are made of plain_user.cpp: one as a user compiles it who knows nothing of our options, with -O0 and for any
// CPU, the other with the options of the library. If the library's arithmetic were compiled in their files too, the
// linker would keep the first copy, theirs, and the two programs would differ.
TEST_CASE("promise 1: a user's program, compiled with plain flags, gets the bits of the library") {
  const program::Result plain = program::shell("'" ORRERY_PLAIN_USER "'"),
                        own = program::shell("'" ORRERY_OWN_USER "'");
  CHECK(plain.exit_code == 0);
  CHECK(plain.text.size() == 17);
  CHECK(plain.text == own.text);
}

// The program never says how many threads there are to be, so that OpenMP's environment decides. A loop that got fewer
// threads than it asked for once ended in products that waited for ever.
TEST_CASE("promise 1: whatever OpenMP's environment says of threads, the library's bits are the same") {
  const std::string usual = program::shell("'" ORRERY_PLAIN_USER "'").text;
  REQUIRE(usual.size() == 17);
  for (const std::string variables :
       {"OMP_DYNAMIC=true", "OMP_DYNAMIC=true OMP_NUM_THREADS=4", "OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=4",
        "OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=4", "OMP_NUM_THREADS=3"}) {
    CAPTURE(variables);
    const program::Result result = program::shell(variables + " timeout 60 '" ORRERY_PLAIN_USER "'");
    CHECK(result.exit_code == 0);
    CHECK(result.text == usual);
  }
}

// As -D ORRERY_NATIVE=OFF builds it, there are three libraries, and the dynamic linker takes the best one that the CPU
// can run; the option --glibc-hwcaps-mask of the linker forbids it some of them. Without AVX2 and FMA a multiplication
// and an addition are rounded one by one, so the library for any CPU has bits of its own.
TEST_CASE("long: promise 1: library and program for every CPU have this machine's own bits with AVX-512 and AVX2") {
  const std::string own = program::shell("'" ORRERY_OWN_USER "'").text;
  const TemporaryFolder folder;
  const std::string build = folder / "build", user = folder / "user", train = "toy --steps 2 --hash";
  const auto made = [](const std::string& command) {
    const program::Result result = program::shell(command + " 2>&1");
    CAPTURE(result.text);
    REQUIRE(result.exit_code == 0);
  };
  made("cmake -S '" ORRERY_SOURCE_DIR "' -B '" + build + "' -G Ninja -D ORRERY_NATIVE=OFF -D ORRERY_TESTS=OFF" +
       " -D CMAKE_INSTALL_LIBDIR=lib");
  made("cmake --build '" + build + "'");
  made("g++ -std=c++20 -fopenmp -I '" ORRERY_SOURCE_DIR "' '" ORRERY_SOURCE_DIR "/tests/promises/plain_user.cpp' -o '" +
       user + "' -L '" + build + "' -lorrery -Wl,-rpath,'" + build + "'");
  const std::string own_hash = program::trained_hash(train);
#if defined(__x86_64__)  // elsewhere there is one library alone
  const std::string linker = "/lib64/ld-linux-x86-64.so.2 --glibc-hwcaps-mask ";
  const auto with_levels = [&](const std::string& levels) {
    return program::shell("LD_DEBUG=libs " + linker + levels + " '" + user +
                          "' 2>&1 | grep -e 'init:.*liborrery' -e '^[0-9a-f]*$'")
        .text;
  };
  const auto trained_by_program = [&](const std::string& levels) {
    return program::hash_in(program::shell(linker + levels + " '" + build + "/orrery' " + train + " 2>/dev/null").text);
  };
  const std::pair<std::string, bool> levels[] = {{"x86-64-v4", __builtin_cpu_supports("avx512f")},
                                                 {"x86-64-v3", __builtin_cpu_supports("avx2")}};
  for (const auto& one : levels) {
    CAPTURE(one.first);
    const std::string text = with_levels(one.first);
    CHECK(program::contains(text, one.first) == one.second);  // a library that this CPU cannot run is not taken
    if (one.second) CHECK(text.ends_with("\n" + own));
    if (one.second) CHECK(trained_by_program(one.first) == own_hash);
  }
  const std::string plain = with_levels("none");
  CHECK_FALSE(program::contains(plain, "glibc-hwcaps"));
  CHECK_FALSE(plain.ends_with("\n" + own));
  CHECK(program::line(plain, -1).size() == 16);
  if (tools::are_there({"qemu-x86_64"})) {  // there OpenBLAS has another kernel, and other bits
    const program::Result old = program::shell("timeout 600 qemu-x86_64 -cpu Nehalem '" + user + "'");
    CHECK(old.exit_code == 0);
    CHECK(old.text.size() == plain.size() - plain.rfind('\n', plain.size() - 2) - 1);
    const program::Result trained = program::shell("timeout 600 qemu-x86_64 -cpu Nehalem '" + build + "/orrery' " +
                                                   program::quick_toy + "--threads 1 --hash 2>/dev/null");
    CHECK(trained.exit_code == 0);
    CHECK(program::hash_in(trained.text) != "");
  }
#endif

  if (!tools::are_there({"pkg-config"})) return;
  const std::string copy = folder / "a copy", installed = folder / "installed";
  made("cmake --install '" + build + "' --prefix '" + copy + "'");
  made("eval \"g++ -std=c++20 '" ORRERY_SOURCE_DIR "/tests/promises/plain_user.cpp' -o '" + installed +
       "' $(PKG_CONFIG_PATH='" + copy + "/lib/pkgconfig' pkg-config --cflags --libs orrery)\"");
  CHECK(program::shell("'" + installed + "'").text == own);
  CHECK(program::hash_in(program::shell("'" + copy + "/bin/orrery' " + train + " 2>/dev/null").text) == own_hash);
}
