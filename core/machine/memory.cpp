// Chapter 8. The caching allocator: TLSF's lists, splitting and joining.
//
// A region is one stretch of addresses, as many as the machine has memory, of which the front is open: it holds memory,
// cut into blocks that lie one after another. When no free block is large enough, the front moves on by what the last
// one lacks. So whatever becomes free can be joined, and what a model does not need is never held. (Closed addresses
// cost nothing, but `top` shows them as virtual memory: twice the machine's, since there are two heaps.) A block
// starts with a 64-byte header: its size, its left neighbour, and, while it is free, its place in the list of its size
// class. Class of a size: the position of its highest bit (first level), then 16 equal steps up to the next power of
// two (second).
// Serves: core/machine/memory.h
#include "core/machine/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

// The lock here would order what two threads do before and after they ask for memory, and hide races that they have.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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

// Whoever uses the library uses this file: so the linker takes the check from it, too.
[[gnu::used]] constexpr const char* cpu_is_checked = &orrery_checks_the_cpu;

constexpr std::size_t unit = 64;  // alignment of addresses and granularity of sizes
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t least_region_bytes = std::size_t{32} << 20;
constexpr std::size_t most_bytes = std::size_t{1} << 44;  // more than machines hold

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Addresses that a new region takes if it can: none to spare where they are limited, as by ulimit -v, since libraries
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
  std::size_t size = 0;       // payload bytes, a multiple of `unit`; 0 marks the end of what is open
  Block* left = nullptr;      // neighbour at the lower address, null for the first of a region
  Block* previous = nullptr;  // in the free list
  Block* next = nullptr;
  Tlsf* heap = nullptr;  // that it goes back to
  bool free = false;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
  Block* right() { return reinterpret_cast<Block*>(payload() + size); }
};
static_assert(sizeof(Block) == unit);

class Tlsf {
 public:
  // Adds what it asks the system for to `counters`, and that alone.
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
    if (Block* right = block->right(); right->free) unlink(right), join(block, right);
    if (Block* left = block->left; left && left->free) unlink(left), join(left, block), block = left;
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

  // A block of at least `size`, null when there is none: first a look at a few of its own class, where the same request
  // of the step before has left its block, then the first non-empty list whose every block is large enough.
  Block* find(std::size_t size) {
    Block* same = head(class_of(size));
    for (int looked = 0; same && looked < 16; ++looked, same = same->next) {
      if (same->size >= size) return same;
    }
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

  // Cuts what `block` has beyond `size` off as a free block of its own.
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

  // A free block of at least `size` at the end of what is open: the one that ends there, and the pages it lacks.
  Block* grow(std::size_t size) {
    if (!end_ || lacking(size) > closed_bytes_) reserve(size);
    const std::size_t more = lacking(size);
    if (more == 0) return end_->left;  // its list may hold smaller ones, so that `find` passed it by
    open(end_ + 1, more);
    closed_bytes_ -= more;
    Block* block = end_;
    block->size = more - sizeof(Block);
    end_ = ::new (block->right()) Block{.left = block};
    if (Block* left = block->left; left && left->free) unlink(left), join(left, block), block = left;
    link(block);
    return block;
  }

  std::size_t lacking(std::size_t size) const {
    const Block* last = end_->left;
    return round_up(last->free ? size - std::min(size, last->size) : size + sizeof(Block), huge_page);
  }

  // A new region, open for one page. Whatever was still closed of the one before is given up.
  void reserve(std::size_t size) {
    const auto map = [](std::size_t bytes) {
      return ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    const std::size_t least = std::max(round_up(size, huge_page) + 3 * huge_page, least_region_bytes);
    std::size_t bytes = std::max(preferred_region_bytes(), least);
    void* memory = map(bytes);
    if (memory == MAP_FAILED && bytes > least) bytes = least, memory = map(bytes);
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

  // Makes memory of the next addresses of the region.
  void open(void* begin, std::size_t bytes) {
    if (::mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    ::madvise(begin, bytes, MADV_HUGEPAGE);  // a wish: where the system refuses it, ordinary pages serve
#endif
    ++counters_.system_requests;
    counters_.system_bytes += static_cast<i64>(bytes);
  }

  MemoryCounters& counters_;
  std::array<Block*, levels * steps> heads_{};
  std::array<u32, levels> used_{};
  u64 used_levels_ = 0;
  Block* end_ = nullptr;          // the mark behind the last block, never free; null before the first region
  std::size_t closed_bytes_ = 0;  // of the region, behind the mark
};

// Large blocks lie apart from small ones: the bias of a layer that lives on, cut out of the place of an activation that
// is gone, would keep the next weight's gradient from using it.
class Memory {
 public:
  void* take(std::size_t bytes) {
    if (bytes > most_bytes) throw std::bad_alloc();
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), unit);
    const std::lock_guard lock(mutex_);
    Tlsf& heap = size < large_bytes ? small_ : large_;
    Block* block = heap.take(size);
    block->heap = &heap;
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

 private:
  // Above the biases and sums of usual models, below their weights and activations: gpt2 takes as much with 64 KB, and
  // 50 MB more with 1 MB.
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

MemoryCounters memory_counters() { return memory().snapshot(); }
void reset_peak() { memory().reset_peak(); }

}  // namespace orrery
