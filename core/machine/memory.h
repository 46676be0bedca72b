// Chapter 8. Memory: a caching allocator, so that a repeated training step asks the system for nothing.
//
// From the third equal step on, a training requests no memory and no page from the system: the elements of its tensors
// use the memory managed here (tests/promises/memory_test.cpp). Every training step allocates the same tensors in the
// same order. Returning their pages to the system and faulting them in again would take much of a step; memory that is
// kept from step to step costs nothing. The small parts, such as nodes and shapes, use C++'s own memory.
//
// The allocator is TLSF, "two-level segregated fit" (Masmano, Ripoll, Crespo, Real 2004): free blocks are kept in lists
// by size class, two bit scans find one, and adjacent free blocks are joined. Block addresses are multiples of 64.
// Builds for AddressSanitizer, ThreadSanitizer or valgrind use the C library's instead, so that these see every block.
// Read next: core/machine/parallel.h
#pragma once

#include <cstddef>
#include <new>

#include "core/dtype.h"

namespace orrery {

/// What `allocate` throws when more than the limit would be needed.
struct MemoryLimitReached : std::bad_alloc {
  const char* what() const noexcept override { return "the limit of memory is reached"; }
};

/// `bytes` of uninitialised memory, aligned to 64 bytes. Throws std::bad_alloc when the system has none left, or
/// MemoryLimitReached.
void* allocate(std::size_t bytes);
/// Gives back what `allocate` returned; null is allowed.
void deallocate(void* memory) noexcept;

/// What the allocator has done since the program started. Bytes are the sizes of allocated blocks: the requested size,
/// rounded up to 64, and 64 more if what remained was too small for a block. Nothing is counted where the C library's
/// allocator is used (see above).
struct MemoryCounters {
  i64 live_bytes = 0;       ///< allocated and not yet freed
  i64 peak_bytes = 0;       ///< the largest `live_bytes` since the last `reset_peak`
  i64 allocations = 0;      ///< calls of `allocate`
  i64 system_requests = 0;  ///< requests for memory from the system
  i64 system_bytes = 0;     ///< obtained from the system
  i64 limit_bytes = 0;      ///< of `system_bytes`; 0: no limit
};
MemoryCounters memory_counters();
void reset_peak();

/// From now on the allocator obtains no more than `bytes` from the system; 0: no limit. A training that does not fit
/// then ends with an error, before the machine swaps or the system kills some program. Without effect where the C
/// library's allocator is used.
void limit_memory(i64 bytes);

}  // namespace orrery
