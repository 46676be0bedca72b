// Chapter 8. The caching allocator: TLSF's lists, splitting and joining.
//
// A region reserves as many addresses as the machine has memory. Only its front part is backed by memory and cut into
// adjacent blocks. When no free block is large enough, the front grows by the bytes that are missing, so free
// neighbours can always be joined. (Reserved addresses cost nothing, but `top` shows them as virtual memory: twice the
// machine's memory, since there are two heaps.) A block starts with a 64-byte header: its size, its left neighbour,
// and, while it is free, its place in the list of its size class. The class of a size has two levels: the position of
// its highest bit, then one of 16 equal steps up to the next power of two. Lists alone, without splitting and joining,
// would be 150 lines shorter and no faster, and a training of `toy` would take 54 MB instead of 38.
#include "core/machine/memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

// Tools that look for wrong uses of memory have to see each block: sanitizers, and valgrind, whose preset defines
// ORRERY_PLAIN_MEMORY. Also, the lock of this allocator would order what two threads do before and after they allocate,
// and so hide their races.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ORRERY_PLAIN_MEMORY)
#define ORRERY_STEPS_ASIDE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ORRERY_STEPS_ASIDE 1
#endif
#endif

// Defined in core/machine/cpu_check.cpp.
extern "C" const char orrery_checks_the_cpu;

namespace orrery {
namespace {

// Every program that uses the library uses this file, so the linker includes the check of the CPU as well.
[[gnu::used]] constexpr const char* cpu_is_checked = &orrery_checks_the_cpu;

constexpr std::size_t unit = 64;  // alignment of addresses and granularity of sizes
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t least_region_bytes = std::size_t{32} << 20;
constexpr std::size_t most_bytes = std::size_t{1} << 44;  // more than machines have

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The addresses that a new region reserves if possible; 0 if addresses are limited, as by ulimit -v, since libraries
// and threads need some, too.
std::size_t preferred_region_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return 0;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? round_up(static_cast<std::size_t>(pages) * static_cast<std::size_t>(page), huge_page)
                               : 0;
}

class Tlsf;

struct alignas(unit) Block {
  std::size_t size = 0;       // payload bytes, a multiple of `unit`; 0 marks the end of the front part
  Block* left = nullptr;      // neighbour at the lower address, null for the first of a region
  Block* previous = nullptr;  // in the free list
  Block* next = nullptr;
  Tlsf* heap = nullptr;  // the heap it is returned to
  bool free = false;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
  Block* right() { return reinterpret_cast<Block*>(payload() + size); }
};
static_assert(sizeof(Block) == unit);

class Tlsf {
 public:
  // Adds what it requests from the system to `counters`, nothing else.
  explicit Tlsf(MemoryCounters& counters) : counters_(counters) {}

  // A block of at least `size` bytes, a multiple of `unit`.
  Block* take(std::size_t size) {
    Block* block = find(size);
    if (!block) block = grow(size);
    unlink(block);
    split(block, size);
    return block;
  }

  void give(Block* block) {
    if (Block* right = block->right(); right->free) {
      unlink(right);
      join(block, right);
    }
    block = joined_to_left(block);
    link(block);
  }

 private:
  static constexpr int steps_log2 = 4, steps = 1 << steps_log2, levels = 48;
  struct Class {
    int level, step;
  };

  static Class class_of(std::size_t size) {
    const int level = std::bit_width(size) - 1;
    return {level, static_cast<int>(size >> (level - steps_log2)) & (steps - 1)};
  }

  // A free block of at least `size`, or null. Looks first at a few blocks of the same class, where an equal request of
  // the previous step has left its block, and then at the first non-empty list whose blocks are all large enough.
  Block* find(std::size_t size) {
    Block* same = head(class_of(size));
    for (int looked = 0; same && looked < 16; ++looked, same = same->next)
      if (same->size >= size) return same;
    const std::size_t next_class = size + (std::size_t{1} << (std::bit_width(size) - 1 - steps_log2)) - 1;
    auto [level, step] = class_of(next_class);
    u32 lists = used_[static_cast<size_t>(level)] & (~u32{0} << step);
    if (!lists) {
      const u64 larger = level + 1 < levels ? used_levels_ & (~u64{0} << (level + 1)) : 0;
      if (!larger) return nullptr;
      level = std::countr_zero(larger);
      lists = used_[static_cast<size_t>(level)];
    }
    return head({level, std::countr_zero(lists)});
  }

  Block*& head(Class c) { return heads_[static_cast<size_t>(c.level * steps + c.step)]; }

  void link(Block* block) {
    const Class c = class_of(block->size);
    block->free = true;
    block->previous = nullptr;
    block->next = head(c);
    if (block->next) block->next->previous = block;
    head(c) = block;
    used_[static_cast<size_t>(c.level)] |= u32{1} << c.step;
    used_levels_ |= u64{1} << c.level;
  }

  void unlink(Block* block) {
    const Class c = class_of(block->size);
    block->free = false;
    if (block->next) block->next->previous = block->previous;
    if (block->previous) {
      block->previous->next = block->next;
    } else if (!(head(c) = block->next)) {
      u32& lists = used_[static_cast<size_t>(c.level)];
      lists &= ~(u32{1} << c.step);
      if (!lists) used_levels_ &= ~(u64{1} << c.level);
    }
  }

  // Makes what `block` has beyond `size` a free block of its own.
  void split(Block* block, std::size_t size) {
    if (block->size < size + sizeof(Block) + unit) return;
    Block* after = block->right();
    const std::size_t rest = block->size - size - sizeof(Block);
    block->size = size;
    Block* remainder = ::new (block->right()) Block{.size = rest, .left = block};
    after->left = remainder;
    link(remainder);
  }

  static void join(Block* left, Block* right) {
    left->size += sizeof(Block) + right->size;
    left->right()->left = left;
  }

  // `block`, or the free block on its left with `block` as its last part.
  Block* joined_to_left(Block* block) {
    Block* left = block->left;
    if (!left || !left->free) return block;
    unlink(left);
    join(left, block);
    return left;
  }

  // A free block of at least `size` at the end of the front part, which grows by the pages that its last block lacks.
  Block* grow(std::size_t size) {
    if (!end_ || lacking(size) > closed_bytes_) reserve(size);
    const std::size_t more = lacking(size);
    if (more == 0) return end_->left;  // `find` skipped it, since its list may hold smaller blocks too
    open(end_ + 1, more);
    closed_bytes_ -= more;
    Block* block = end_;
    block->size = more - sizeof(Block);
    end_ = ::new (block->right()) Block{.left = block};
    block = joined_to_left(block);
    link(block);
    return block;
  }

  std::size_t lacking(std::size_t size) const {
    const Block* last = end_->left;
    return round_up(last->free ? size - std::min(size, last->size) : size + sizeof(Block), huge_page);
  }

  // Begins a new region, whose front is one page. The unused addresses of the region before are given up.
  void reserve(std::size_t size) {
    const auto map = [](std::size_t bytes) {
      return ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    const std::size_t least = std::max(round_up(size, huge_page) + 3 * huge_page, least_region_bytes);
    std::size_t bytes = std::max(preferred_region_bytes(), least);
    void* memory = map(bytes);
    if (memory == MAP_FAILED && bytes > least) {
      bytes = least;
      memory = map(bytes);
    }
    if (memory == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::byte* begin = static_cast<std::byte*>(memory) + (round_up(address, huge_page) - address);
    try {
      open(begin, huge_page);
    } catch (const std::bad_alloc&) {
      ::munmap(memory, bytes);
      throw;
    }
    Block* block = ::new (begin) Block{.size = huge_page - 2 * sizeof(Block)};
    end_ = ::new (block->right()) Block{.left = block};
    closed_bytes_ = bytes - 2 * huge_page;
    link(block);
  }

  // Backs the next addresses of the region with memory.
  void open(void* begin, std::size_t bytes) {
    const i64 limit = counters_.limit_bytes;
    if (limit > 0 && counters_.system_bytes + static_cast<i64>(bytes) > limit) throw MemoryLimitReached();
    if (::mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    ::madvise(begin, bytes, MADV_HUGEPAGE);  // a request: if the system refuses, pages have the ordinary size
#endif
    ++counters_.system_requests;
    counters_.system_bytes += static_cast<i64>(bytes);
  }

  MemoryCounters& counters_;
  std::array<Block*, levels * steps> heads_{};
  std::array<u32, levels> used_{};
  u64 used_levels_ = 0;
  Block* end_ = nullptr;          // the mark after the last block, never free; null before the first region
  std::size_t closed_bytes_ = 0;  // reserved after the mark
};

// Large and small blocks have separate heaps. A small, long-lived bias placed where a large activation was would keep
// the next large gradient from fitting there.
class Memory {
 public:
  void* take(std::size_t bytes) {
    if (bytes > most_bytes) throw std::bad_alloc();
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), unit);
    const std::lock_guard lock(mutex_);
    Block* block = size < large_bytes ? take(size, small_, large_) : take(size, large_, small_);
    ++counters_.allocations;
    counters_.live_bytes += static_cast<i64>(block->size);
    counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
    return block->payload();
  }

  void give(void* memory) {
    const std::lock_guard lock(mutex_);
    Block* block = reinterpret_cast<Block*>(static_cast<std::byte*>(memory) - sizeof(Block));
    counters_.live_bytes -= static_cast<i64>(block->size);
    block->heap->give(block);
  }

  MemoryCounters snapshot() {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    counters_.peak_bytes = counters_.live_bytes;
  }

  void limit(i64 bytes) {
    const std::lock_guard lock(mutex_);
    counters_.limit_bytes = bytes;
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  // A block of `heap`. Where the system has no more, `other` may still have a free one that is large enough.
  static Block* take(std::size_t size, Tlsf& heap, Tlsf& other) {
    const auto block_of = [size](Tlsf& from) {
      Block* block = from.take(size);
      block->heap = &from;
      return block;
    };
    try {
      return block_of(heap);
    } catch (const std::bad_alloc&) { return block_of(other); }
  }

  // Larger than the biases and sums of usual models, smaller than their weights (apps/measure/bench/README.md).
  static constexpr std::size_t large_bytes = std::size_t{256} << 10;

  std::mutex mutex_;
  MemoryCounters counters_;
  Tlsf small_{counters_}, large_{counters_};
};

// Never destroyed: tensors in static storage may outlive every other static object.
Memory& memory() {
  alignas(Memory) static std::byte storage[sizeof(Memory)];
  static Memory* const instance = ::new (storage) Memory;
  return *instance;
}

}  // namespace

#ifdef ORRERY_STEPS_ASIDE
void* allocate(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 39;  // a sanitizer ends the program where more is asked for
  if (bytes > most) throw std::bad_alloc();
  void* memory = std::aligned_alloc(unit, round_up(std::max<std::size_t>(bytes, 1), unit));
  if (!memory) throw std::bad_alloc();
  return memory;
}
void deallocate(void* memory) noexcept { std::free(memory); }
#else
void* allocate(std::size_t bytes) { return memory().take(bytes); }
void deallocate(void* block) noexcept {
  if (block) memory().give(block);
}
#endif

namespace {
// A child that is forked while another thread allocates would wait forever for a lock that no thread of its own holds.
[[maybe_unused]] const int fork_handler =
    pthread_atfork([] { memory().lock(); }, [] { memory().unlock(); }, [] { memory().unlock(); });
}  // namespace

MemoryCounters memory_counters() { return memory().snapshot(); }
void reset_peak() { memory().reset_peak(); }
void limit_memory(i64 bytes) { memory().limit(bytes); }

}  // namespace orrery
