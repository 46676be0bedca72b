// Chapter 9. `orrery bench ops`: how fast every loop is that is no matrix product, beside the machine's triad.
//
// Two sizes: one whose matrices stay in the caches of the cores, one whose do not fit into any cache.
// Read next: apps/bench_ops.cpp
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/bench_loops.h"

namespace orrery {

/// Rows of 512 numbers: 256 KB, and 64 MB.
inline constexpr i64 loop_columns = 512, rows_in_cache = 128, rows_beyond_cache = 32768;

/// A loop's bytes per second, each byte that must be read or written counted once.
struct MeasuredLoop {
  std::string name;
  double in_cache = 0, beyond_cache = 0;
};

/// Bytes per second in its fastest run.
double measured_speed(const Loop& loop);
/// Every loop at both sizes; the first one is the triad.
std::vector<MeasuredLoop> measure_loops();

/// At most 100 columns; shares are of the first row.
void print_loops(std::ostream& out, const std::vector<MeasuredLoop>& loops);

}  // namespace orrery
