// Chapter 8. Tests of the allocator: alignment, blocks that never overlap, counters, nothing new for a repeated step.
#include "core/machine/memory.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"
#include "tests/core/support.h"
#include "tests/promises/rerun.h"

using namespace orrery;

namespace {

struct Piece {
  unsigned char* memory;
  size_t bytes;
  unsigned char pattern;

  Piece(size_t bytes, unsigned char pattern)
      : memory(static_cast<unsigned char*>(allocate(bytes))), bytes(bytes), pattern(pattern) {
    std::memset(memory, pattern, bytes);
  }
  bool intact() const {
    for (size_t i = 0; i < bytes; ++i)
      if (memory[i] != pattern) return false;
    return true;
  }
};

// Allocates and frees at random; false if a block was misaligned or written over.
bool stress(u64 seed, int steps, i64 most_log2 = 18) {
  Rng rng(seed);
  std::vector<Piece> pieces;
  bool good = true;
  for (int step = 0; step < steps; ++step) {
    if (pieces.size() < 20 || (pieces.size() < 400 && rng.uniform() < 0.5)) {
      // Sizes from 0 bytes on, small ones as often as large ones.
      const auto bytes = static_cast<size_t>(rng.integer(0, i64{1} << rng.integer(1, most_log2)));
      pieces.emplace_back(bytes, static_cast<unsigned char>(step));
      good = good && reinterpret_cast<std::uintptr_t>(pieces.back().memory) % 64 == 0;
    } else {
      const auto chosen = static_cast<size_t>(rng.integer(0, static_cast<i64>(pieces.size())));
      good = good && pieces[chosen].intact();
      deallocate(pieces[chosen].memory);
      pieces[chosen] = pieces.back();
      pieces.pop_back();
    }
  }
  for (const Piece& piece : pieces) {
    good = good && piece.intact();
    deallocate(piece.memory);
  }
  return good;
}

}  // namespace

// Where memory is not counted, many tests of memory have nothing to show and return.
TEST_CASE("memory is counted, except for tools that have to see each block") {
  bool seen_by_tools = false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ORRERY_PLAIN_MEMORY)
  seen_by_tools = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  seen_by_tools = true;
#endif
#endif
  CHECK(small::counts_memory() == !seen_by_tools);
}

TEST_CASE("blocks are aligned to 64 bytes, whatever their size") {
  for (const size_t bytes : {0, 1, 63, 64, 65, 4096, 1 << 20}) {
    void* memory = allocate(bytes);
    CHECK(memory != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    deallocate(memory);
  }
  deallocate(nullptr);
}

TEST_CASE("random requests never overlap") {
  for (const u64 seed : {1, 2, 3}) CHECK(stress(seed, 20'000));
  CHECK(stress(4, 1'500, 22));  // up to 2 MB: blocks of both kinds
}

TEST_CASE("everything is given back, and one block takes the place of many") {
  if (!small::counts_memory()) return;
  const i64 live = memory_counters().live_bytes;
  CHECK(stress(4, 5'000));
  CHECK(memory_counters().live_bytes == live);
  // Joined neighbours: what many blocks held serves one larger request.
  std::vector<void*> many;
  for (int i = 0; i < 100; ++i) many.push_back(allocate(300'000));
  const i64 grown = memory_counters().system_requests;
  for (void* memory : many) deallocate(memory);
  deallocate(allocate(29'000'000));
  CHECK(memory_counters().system_requests == grown);
}

TEST_CASE("a larger request takes the free block at the end and asks for what that lacks") {
  if (!small::counts_memory()) return;
  deallocate(allocate(200'000'000));
  const i64 held = memory_counters().system_bytes;
  deallocate(allocate(210'000'000));
  CHECK(memory_counters().system_bytes > held);
  CHECK(memory_counters().system_bytes <= held + 10'000'000 + (2 << 20));
}

TEST_CASE("small blocks leave the place of a large one alone") {
  if (!small::counts_memory()) return;
  constexpr size_t bytes = 50'000'000;
  std::byte* large = static_cast<std::byte*>(allocate(bytes));
  void* next = allocate(1'000'000);  // keeps the place from growing
  deallocate(large);
  std::vector<void*> small;
  bool inside = false;
  for (int i = 0; i < 60'000; ++i) {
    const std::byte* block = static_cast<std::byte*>(small.emplace_back(allocate(1'000)));
    inside |= block >= large && block < large + bytes;
  }
  CHECK_FALSE(inside);
  for (void* memory : small) deallocate(memory);
  deallocate(next);
}

TEST_CASE("where the system has no more, the allocator keeps working") {
  if (!small::counts_memory()) return;
  if (std::getenv("ORRERY_TEST_NO_MORE") == nullptr) {
    // In a program of its own, whose heap may keep 8 TB of addresses.
    promises::check_rerun("ORRERY_TEST_NO_MORE=1", "where the system has no more*");
    return;
  }
  // More than this machine's memory, and less than `allocate` refuses by itself. Where the system promises whatever it
  // is asked for, nothing is written there.
  try {
    deallocate(allocate(size_t{1} << 43));
  } catch (const std::bad_alloc&) {}
  CHECK(stress(5, 2'000));
}

TEST_CASE("where addresses are limited, a block of nearly all of them finds its place") {
  if (!small::counts_memory()) return;
  const char* limited = std::getenv("ORRERY_TEST_LIMITED");
  if (limited == nullptr) {  // in a program of its own, whose heap has not begun
    promises::check_rerun("ORRERY_TEST_LIMITED=1", "where addresses are limited*", "ulimit -v 3000000 && ");
    return;
  }
  std::vector<void*> blocks;
  for (const size_t bytes : {100, 300'000'000, 1'500'000'000, 100, 20'000'000}) {
    blocks.push_back(allocate(bytes));
    std::memset(blocks.back(), 1, 64);
  }
  CHECK_THROWS_AS(allocate(size_t{4} << 30), std::bad_alloc);  // the limit is 3 GB
  for (void* block : blocks) deallocate(block);
  CHECK(stress(6, 2'000));
}

TEST_CASE("an equal second round asks the system for nothing") {
  if (!small::counts_memory()) return;
  const auto round = [] {
    std::vector<void*> blocks;
    for (const size_t bytes : {3'000'000, 40'000'000, 64, 7'000'000, 120'000'000, 100, 500'000}) {
      blocks.push_back(allocate(bytes));
      if (blocks.size() == 4) {
        deallocate(blocks[1]);
        blocks[1] = nullptr;
      }
    }
    for (void* memory : blocks) deallocate(memory);
  };
  round();
  const MemoryCounters first = memory_counters();
  for (int i = 0; i < 5; ++i) round();
  const MemoryCounters second = memory_counters();
  CHECK(second.system_requests == first.system_requests);
  CHECK(second.system_bytes == first.system_bytes);
  CHECK(second.peak_bytes == first.peak_bytes);
  CHECK(second.live_bytes == first.live_bytes);
  CHECK(second.allocations == first.allocations + 5 * 7);
}

TEST_CASE("live and peak bytes count what is handed out") {
  if (!small::counts_memory()) return;
  reset_peak();
  const i64 start = memory_counters().live_bytes;
  CHECK(memory_counters().peak_bytes == start);
  void* a = allocate(1'000'000);
  void* b = allocate(2'000'000);
  // Rounded up to 64; a rest too small for a block of its own stays with the block.
  CHECK(memory_counters().live_bytes - start >= 3'000'000);
  CHECK(memory_counters().live_bytes - start <= 3'000'000 + 2 * 192);
  const i64 peak = memory_counters().peak_bytes;
  CHECK(peak == memory_counters().live_bytes);
  deallocate(a);
  deallocate(b);
  CHECK(memory_counters().live_bytes == start);
  CHECK(memory_counters().peak_bytes == peak);
  reset_peak();
  CHECK(memory_counters().peak_bytes == start);
}

TEST_CASE("more than any machine has is std::bad_alloc") {
  if (!small::counts_memory()) return;  // the sanitizer's own allocator ends the program instead
  CHECK_THROWS_AS(allocate(size_t{1} << 50), std::bad_alloc);
  CHECK_THROWS_AS(allocate(~size_t{0}), std::bad_alloc);
}

TEST_CASE("the addresses that are taken are in proportion to the machine's memory") {
  if (!small::counts_memory()) return;                    // the sanitizer takes its own
  if (std::getenv("ORRERY_TEST_ADDRESSES") == nullptr) {  // in a program of its own: other tests ask for much more
    promises::check_rerun("ORRERY_TEST_ADDRESSES=1", "the addresses that are taken*");
    return;
  }
  deallocate(allocate(100));
  deallocate(allocate(1'000'000));
  std::ifstream status("/proc/self/status");
  i64 kilobytes = -1;
  for (std::string word; status >> word;)
    if (word == "VmSize:") status >> kilobytes;
  REQUIRE(kilobytes > 0);
  const i64 memory = i64{::sysconf(_SC_PHYS_PAGES)} * i64{::sysconf(_SC_PAGESIZE)};
  CHECK(kilobytes * 1024 <= 4 * memory);
}

TEST_CASE("a limit of addresses near the machine's memory leaves the libraries theirs") {
  if (!small::counts_memory()) return;
  const char* limited = std::getenv("ORRERY_TEST_NEAR_LIMIT");
  if (limited == nullptr) {
    const i64 kilobytes = i64{::sysconf(_SC_PHYS_PAGES)} * i64{::sysconf(_SC_PAGESIZE)} / 1024;
    promises::check_rerun("ORRERY_TEST_NEAR_LIMIT=1", "a limit of addresses near*",
                          "ulimit -v " + std::to_string(kilobytes + kilobytes / 20) + " && ");
    return;
  }
  // One heap must not take what the other needs.
  const auto most = static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void *small = allocate(100), *large = allocate(most / 4);
  CHECK(small != nullptr);
  CHECK(large != nullptr);
  deallocate(large);
  deallocate(small);
}

TEST_CASE("promise 22: beyond the limit nothing is taken from the system, and the error says so") {
  if (!small::counts_memory()) return;
  constexpr i64 much = i64{256} << 20;
  struct NoLimit {
    ~NoLimit() { limit_memory(0); }
  } afterwards;
  const i64 limit = memory_counters().system_bytes + much / 2;
  limit_memory(limit);
  CHECK(memory_counters().limit_bytes == limit);
  CHECK_THROWS_AS(allocate(static_cast<size_t>(2 * limit)), MemoryLimitReached);
  CHECK(memory_counters().system_bytes <= limit);
  CHECK(small::error_of([&] { Tensor::empty({2 * limit / 4}); }) ==
        "tensor: shape [" + std::to_string(limit / 2) + "] of f32 takes " + std::to_string(limit / 2 * 4) +
            " bytes, more than is left of the " + std::to_string(limit) +
            " bytes that tensors may take (limit_memory, --max-memory)");
  deallocate(allocate(static_cast<size_t>(much / 4)));  // there is room for this
  limit_memory(0);
  deallocate(allocate(static_cast<size_t>(2 * limit)));
}

TEST_CASE("once memory ran out, small blocks find a place in what large ones gave back") {
  if (!small::counts_memory()) return;
  struct NoLimit {
    ~NoLimit() { limit_memory(0); }
  } afterwards;
  constexpr size_t much = size_t{8} << 20;
  std::vector<void*> blocks;
  const auto take_all = [&](size_t bytes) {
    const size_t before = blocks.size();
    try {
      for (;;) blocks.push_back(allocate(bytes));
    } catch (const MemoryLimitReached&) {}
    return blocks.size() - before;
  };
  limit_memory(memory_counters().system_bytes + static_cast<i64>(4 * much));
  CHECK(take_all(much) >= 3);
  take_all(1000);  // nothing is left in either heap
  CHECK_THROWS_AS(allocate(1000), MemoryLimitReached);
  deallocate(blocks[0]);
  deallocate(blocks[1]);
  CHECK(take_all(1000) >= 2 * much / 1200);
  for (void* block : std::vector(blocks.begin() + 2, blocks.end())) deallocate(block);
}
