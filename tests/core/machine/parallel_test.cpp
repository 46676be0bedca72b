// Chapter 8. Tests of threads: every element once, borders by shape alone, and denormals flushed in every thread.
#include "core/machine/parallel.h"

#include <doctest/doctest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <set>
#include <thread>

#include "core/kernels/reduce.h"
#include "core/products/gemm.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("the number of threads is at least 1") {
  CHECK(error_of([] { set_threads(0); }) == "set_threads: needs at least 1 thread, got 0");
  const Threads scope(3);
  CHECK(threads() == 3);
}

TEST_CASE("every element is visited once, whatever the threads and the grain") {
  for (const int count : {1, 2, 3, 8}) {
    const Threads scope(count);
    for (const i64 n : {0, 1, 5, 64, 65, 1000}) {
      for (const i64 grain : {1, 7, 64, 5000}) {
        std::vector<int> visits(static_cast<size_t>(n), 0);
        parallel_for(n, grain, [&](i64 begin, i64 end) {
          for (i64 i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        CHECK(std::count(visits.begin(), visits.end(), 1) == n);
      }
    }
  }
}

TEST_CASE("borders of chunks depend on (n, grain) alone") {
  for (const int count : {1, 2, 3, 8}) {
    const Threads scope(count);
    std::array<i64, 4> ends{};
    parallel_for(100, 30, [&](i64 begin, i64 end) { ends.at(static_cast<size_t>(begin / 30)) = end; });
    CHECK(ends == std::array<i64, 4>{30, 60, 90, 100});
  }
}

TEST_CASE("a loop of little work stays on its thread, unless a proof shares every loop; one of more work does not") {
  const auto threads_of = [](i64 work) {
    std::array<std::thread::id, 2> ran_on;
    parallel_tasks(
        2, [&](i64 i) { ran_on.at(static_cast<size_t>(i)) = std::this_thread::get_id(); }, work);
    return std::set<std::thread::id>(ran_on.begin(), ran_on.end()).size();
  };
  const int before = threads();
  set_threads(2);
  CHECK(threads_for(least_shared_work - 1) == 1);
  CHECK(threads_for(least_shared_work) == 2);
  CHECK(threads_of(least_shared_work - 1) == 1);
  CHECK(kernels::gemm_tiles(40, 40, 40, Trans::none) == 1);
  CHECK(kernels::gemm_tiles(128, 128, 128, Trans::none) == 2);
  {
    const ExactThreads exact;
    CHECK(threads_for(0) == 2);
    CHECK(threads_of(0) == 2);
    CHECK(kernels::gemm_tiles(40, 40, 40, Trans::none) == 2);
  }
  CHECK(threads_of(0) == 1);
  set_threads(before);
}

TEST_CASE("a loop on one thread is in no parallel region, which would cost an allocation and calls of the system") {
  int level = -1;
  parallel_tasks(1, [&](i64) { level = omp_get_level(); });
  CHECK(level == 0);
}

TEST_CASE("rows of any width make chunks of about the same work") {
  CHECK(row_grain(0) == elementwise_grain);
  CHECK(row_grain(1) == elementwise_grain);
  CHECK(row_grain(64) == elementwise_grain / 64);
  CHECK(row_grain(1'000'000) == 1);
}

#if defined(__x86_64__)
TEST_CASE("promise 15: every thread has flush-to-zero and denormals-are-zero set") {
  constexpr unsigned both = 0x8040;
  for (const int count : {1, 2, 3, 8}) {
    const Threads scope(count);
    std::vector<unsigned> state(64, 0);
    parallel_for(64, 1, [&](i64 begin, i64) { state[static_cast<size_t>(begin)] = _mm_getcsr(); });
    for (const unsigned flags : state) CHECK((flags & both) == both);
  }
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("promise 15: the floating-point mode of the calling thread is as it was") {
  const auto keeps_denormals = [] {
    const volatile float small = 1e-30F;
    return std::bit_cast<u32>(small * 1e-10F) != 0;
  };
  for (const int count : {1, 2, 8}) {
    const Threads scope(count);
    REQUIRE(keeps_denormals());
    parallel_for(1, 10, [](i64, i64) {});
    parallel_for(100, 1, [](i64, i64) {});
    parallel_tasks(1, [](i64) {});
    CHECK(keeps_denormals());
    sum_of_squares(full({100}, 1e-30));
    matmul(full({64, 64}, 1e-30), full({64, 64}, 1e-10));
    CHECK(keeps_denormals());
  }
}

TEST_CASE("promise 15: small sums on the calling thread take denormal numbers as zero, as large ones do") {
  for (const i64 n : {3, 5000}) {
    CAPTURE(n);
    CHECK(std::bit_cast<u32>(static_cast<float>(sum(full({n}, 1e-40)).item())) == 0);
  }
}

TEST_CASE("promise 15: denormal results are zero in every thread") {
  const Threads scope(8);
  constexpr i64 n = 64;
  std::vector<float> products(n, -1.0F);
  std::array<std::thread::id, n> ran_on;
  const volatile float small = 1e-30F;  // the product below is denormal
  parallel_for(n, 1, [&](i64 begin, i64) {
    products[static_cast<size_t>(begin)] = small * 1e-10F;
    ran_on[static_cast<size_t>(begin)] = std::this_thread::get_id();
  });
  // By their bits, so that the mode of this thread plays no part.
  CHECK(std::all_of(products.begin(), products.end(), [](float p) { return std::bit_cast<u32>(p) == 0; }));
  CHECK(std::set<std::thread::id>(ran_on.begin(), ran_on.end()).size() > 1);
}

TEST_CASE("promise 15: denormal results are zero where one chunk stays on a fresh thread") {
  float product = -1.0F;
  const volatile float small = 1e-30F;
  std::thread([&] { parallel_for(1, 10, [&](i64, i64) { product = small * 1e-10F; }); }).join();
  CHECK(std::bit_cast<u32>(product) == 0);
}
#endif

// In a child, LLVM's runtime forgets the number of threads, and that it is inside a loop.
#ifdef __clang__
constexpr bool child_remembers = false;
#else
constexpr bool child_remembers = true;
#endif

TEST_CASE("after a fork parent and child compute with as many threads as they like") {
  const Threads scope(4);
  const auto visited = [] {
    std::atomic<i64> sum{0};
    std::mutex lock;
    std::set<std::thread::id> seen;
    parallel_for(100, 1, [&](i64 begin, i64 end) {
      sum += end - begin;
      const std::lock_guard guard(lock);
      seen.insert(std::this_thread::get_id());
    });
    return sum == 100 ? seen.size() : 0;
  };
  REQUIRE(visited() == 4);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    if (!child_remembers) set_threads(4);
    if (visited() != 4) _exit(1);
    set_threads(2);
    _exit(visited() == 2 ? 0 : 2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(visited() == 4);
}

TEST_CASE("a child forked inside a loop computes, with one thread") {
  const Threads scope(2);
  std::atomic<int> status{-1};
  parallel_tasks(2, [&](i64 i) {
    if (i != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      i64 sum = 0;
      set_threads(2);
      parallel_for(100, 1, [&](i64 begin, i64 end) { sum += end - begin; });
      _exit(sum == 100 && (threads() == 1 || !child_remembers) ? 0 : 1);
    }
    int ended = -1;
    if (waitpid(child, &ended, 0) == child) status = ended;
  });
  CHECK(WIFEXITED(status.load()));
  CHECK(WEXITSTATUS(status.load()) == 0);
}
