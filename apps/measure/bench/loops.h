// Chapter 9. The loops that `orrery bench ops` measures: all kernels of a training step except matrix products.
//
// Such a loop reads and writes memory and computes little in between, so memory limits its speed. It is compared with
// the triad  a_i = b_i + s c_i  (McCalpin's STREAM), which computes almost nothing. If a loop is slower than the triad,
// it spends time on arithmetic or moves the same bytes twice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// One kernel, with its own numbers to work on.
struct Loop {
  std::string name;
  double bytes;                           ///< bytes that one run must read and write, each counted once
  std::function<void()> run;              ///< what is measured
  std::function<void()> prepare = [] {};  ///< before every run, not measured
};

/// Only reads memory, on all threads: 256 MB, which is more than the caches of most machines hold.
class MemoryReader {
 public:
  MemoryReader();
  double bytes() const { return static_cast<double>(numbers_.bytes()); }
  void read();

 private:
  Tensor numbers_, sums_;
};

/// Every loop over matrices of this shape; the first one is the triad. `rows` must be a multiple of 32, `columns` of 8.
std::vector<Loop> bench_loops(i64 rows, i64 columns);

}  // namespace orrery
