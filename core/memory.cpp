// Chapter 8. The caching allocator: TLSF's lists, splitting and joining.
//
// An arena is one large piece from the system, cut into blocks that lie one after another. A block starts with a
// 64-byte header: its size, its left neighbour, and, while it is free, its place in the list of its size class. Class
// of a size: the position of its highest bit (first level), then 16 equal steps up to the next power of two (second).
// Read next: core/parallel.h
#include "core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define ORRERY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORRERY_ASAN 1
#endif
#endif

namespace orrery {
namespace {

constexpr std::size_t unit = 64;                            // alignment of addresses and granularity of sizes
constexpr std::size_t arena_bytes = std::size_t{32} << 20;  // the least we ask the system for
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t most_bytes = std::size_t{1} << 46;  // more than any machine holds, less than the lists can name

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

struct alignas(unit) Block {
  std::size_t size = 0;       // payload bytes, a multiple of `unit`; 0 marks the end of an arena
  Block* left = nullptr;      // neighbour at the lower address, null for the first of an arena
  Block* previous = nullptr;  // in the free list
  Block* next = nullptr;
  bool free = false;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
  Block* right() { return reinterpret_cast<Block*>(payload() + size); }
};
static_assert(sizeof(Block) == unit);

class Tlsf {
 public:
  void* take(std::size_t bytes) {
    if (bytes > most_bytes) throw std::bad_alloc();
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), unit);
    const std::lock_guard lock(mutex_);
    Block* block = find(size);
    if (!block) block = grow(size);
    unlink(block);
    split(block, size);
    ++counters.allocations;
    counters.live_bytes += static_cast<i64>(block->size);
    counters.peak_bytes = std::max(counters.peak_bytes, counters.live_bytes);
    return block->payload();
  }

  void give(void* memory) {
    const std::lock_guard lock(mutex_);
    Block* block = reinterpret_cast<Block*>(static_cast<std::byte*>(memory) - sizeof(Block));
    counters.live_bytes -= static_cast<i64>(block->size);
    if (Block* right = block->right(); right->free) unlink(right), join(block, right);
    if (Block* left = block->left; left && left->free) unlink(left), join(left, block), block = left;
    link(block);
  }

  MemoryCounters snapshot() {
    const std::lock_guard lock(mutex_);
    return counters;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    counters.peak_bytes = counters.live_bytes;
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

  Block* grow(std::size_t size) {
    const std::size_t bytes = round_up(std::max(size + 2 * sizeof(Block), arena_bytes), huge_page);
    void* memory = std::aligned_alloc(huge_page, bytes);
    if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: where the system refuses it, ordinary pages serve
#endif
    ++counters.system_requests;
    counters.system_bytes += static_cast<i64>(bytes);
    Block* block = ::new (memory) Block{.size = bytes - 2 * sizeof(Block)};
    ::new (block->right()) Block{.left = block};  // the end mark, never free
    link(block);
    return block;
  }

  std::mutex mutex_;
  std::array<Block*, levels * steps> heads_{};
  std::array<u32, levels> used_{};
  u64 used_levels_ = 0;
  MemoryCounters counters;
};

// Never destroyed: tensors in static storage may outlive every other static object.
Tlsf& tlsf() {
  alignas(Tlsf) static std::byte storage[sizeof(Tlsf)];
  static Tlsf* const instance = ::new (storage) Tlsf;
  return *instance;
}

}  // namespace

#ifdef ORRERY_ASAN
void* allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(unit, round_up(std::max<std::size_t>(bytes, 1), unit));
  if (!memory) throw std::bad_alloc();
  return memory;
}
void deallocate(void* memory) noexcept { std::free(memory); }
#else
void* allocate(std::size_t bytes) { return tlsf().take(bytes); }
void deallocate(void* memory) noexcept {
  if (memory) tlsf().give(memory);
}
#endif

MemoryCounters memory_counters() { return tlsf().snapshot(); }
void reset_peak() { tlsf().reset_peak(); }

}  // namespace orrery
