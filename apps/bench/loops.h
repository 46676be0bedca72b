// Chapter 9. The loops that `orrery bench ops` measures: the kernels of a training step that are no matrix product.
//
// Such a loop reads and writes memory and computes little between. So its speed is that of its memory, and its measure
// is the triad  a_i = b_i + s c_i  (McCalpin's STREAM), which computes next to nothing: what a loop stays behind it is
// time spent on arithmetic, or on moving the same bytes twice.
// Serves: core/machine/parallel.h
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// One kernel with numbers of its own to work on.
struct Loop {
  std::string name;
  double bytes;                           ///< that one run must read and write, each once
  std::function<void()> run;              ///< what is measured
  std::function<void()> prepare = [] {};  ///< before every run, not measured
};

/// Reads memory and does nothing else, on all threads: 256 MB, more than the caches of most machines hold.
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
