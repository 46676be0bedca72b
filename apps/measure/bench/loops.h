// Chapter 9. The two loops that others are measured by: McCalpin's triad, and reading memory.
#pragma once

#include "core/tensor.h"

namespace orrery {

/// a_i = b_i + 3 c_i. It computes almost nothing, so memory limits its speed. All have the same shape, in f32.
void triad(const Tensor& b, const Tensor& c, Tensor& a);

/// Only reads memory, on all threads: 256 MB, which is more than the caches of most machines hold.
class MemoryReader {
 public:
  MemoryReader();
  double bytes() const { return static_cast<double>(numbers_.bytes()); }
  void read();

 private:
  Tensor numbers_, sums_;
};

}  // namespace orrery
