// Chapter 8. Memory that runs out: the N-th allocation fails, once or from then on.
//
// Allocations are those of operator new, which this header replaces, and of `allocate`, from which tensors have their
// elements: the linker puts `__wrap_...` in its place (tests/CMakeLists.txt). Include it in one source of a
// program only: it defines operator new.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/machine/memory.h"

namespace orrery::scarce {

/// What all allocations of this program have come to.
struct Ledger {
  std::atomic<i64> until_failure{0};  ///< the allocation that fails, counted from 1; 0 or less: none
  std::atomic<bool> for_good{false};  ///< whether all later ones fail as well
  std::atomic<i64> failures{0};
  std::atomic<i64> blocks{0};                ///< allocated and not yet freed
  std::atomic<i64> bytes{0}, peak_bytes{0};  ///< of operator new; tensors are added to the peak
  std::atomic<bool> measures_peak{false};    ///< whether `peak_bytes` is kept up to date
};
inline Ledger ledger;

/// Throws if this allocation is one that fails.
inline void count_allocation() {
  const i64 left = ledger.until_failure.load();
  if (left > 0) ledger.until_failure = left - 1;
  const bool strikes = left == 1 || (ledger.for_good && left == 0 && ledger.failures > 0);
  if (!strikes) return;
  ++ledger.failures;
  throw std::bad_alloc();
}

inline void note_peak() {
  const i64 now = ledger.bytes + memory_counters().live_bytes;
  if (now > ledger.peak_bytes) ledger.peak_bytes = now;
}

inline void* noted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++ledger.blocks;
  ledger.bytes += static_cast<i64>(malloc_usable_size(memory));
  if (ledger.measures_peak) note_peak();
  return memory;
}

inline void forget(void* memory) noexcept {
  if (memory == nullptr) return;
  --ledger.blocks;
  ledger.bytes -= static_cast<i64>(malloc_usable_size(memory));
  std::free(memory);
}

/// Calls `attempt` with its first allocation failing, then the one `stride` later, and so on until it has no more.
/// after_failure(thrown) is called each time, when memory is there again; `thrown` is false if the attempt came through
/// all the same. Returns the number of failures.
template <class Attempt, class AfterFailure>
i64 fail_each(bool for_good, i64 stride, const Attempt& attempt, const AfterFailure& after_failure) {
  for (i64 n = 1, failed = 0;; n += stride, ++failed) {
    ledger.failures = 0;
    ledger.for_good = for_good;
    ledger.until_failure = n;
    const bool thrown = attempt();
    ledger.until_failure = 0;
    ledger.for_good = false;
    if (ledger.failures == 0) return failed;
    after_failure(thrown);
  }
}

}  // namespace orrery::scarce

// The other forms of operator new and delete call these. AddressSanitizer brings its own form with std::nothrow, so
// that form is replaced as well.
void* operator new(std::size_t bytes) {
  orrery::scarce::count_allocation();
  return orrery::scarce::noted(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  orrery::scarce::count_allocation();
  const std::size_t unit = static_cast<std::size_t>(alignment);
  return orrery::scarce::noted(std::aligned_alloc(unit, (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) { return nullptr; }
}
void operator delete(void* memory) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::size_t) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { orrery::scarce::forget(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { orrery::scarce::forget(memory); }

// orrery::allocate and orrery::deallocate, by the names that the linker knows.
extern "C" void* __real__ZN6orrery8allocateEm(std::size_t bytes);
extern "C" void __real__ZN6orrery10deallocateEPv(void* memory) noexcept;
extern "C" void* __wrap__ZN6orrery8allocateEm(std::size_t bytes) {
  orrery::scarce::count_allocation();
  void* memory = __real__ZN6orrery8allocateEm(bytes);
  ++orrery::scarce::ledger.blocks;
  if (orrery::scarce::ledger.measures_peak) orrery::scarce::note_peak();
  return memory;
}
extern "C" void __wrap__ZN6orrery10deallocateEPv(void* memory) noexcept {
  if (memory != nullptr) --orrery::scarce::ledger.blocks;
  __real__ZN6orrery10deallocateEPv(memory);
}
