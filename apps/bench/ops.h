// Chapter 9. `orrery bench ops`: how fast every loop is that is no matrix product, beside the machine's triad.
//
// Two sizes: one whose matrices stay in the caches of the cores, one whose do not fit into any cache.
// Serves: core/machine/parallel.h
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/loops.h"

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
/// Every loop at both sizes; the first one is the triad, of which the best of three counts: at the start, in the middle
/// and at the end of its size. A busy machine, where these differ by more than a fifth, gets a warning on `notes`.
std::vector<MeasuredLoop> measure_loops(std::ostream& notes);

/// The largest; warns on `notes` when the smallest is less than 0.8 of it.
double best_of_triads(const std::vector<double>& speeds, std::ostream& notes);

/// At most 100 columns; shares are of the first row, at most 999 %.
void print_loops(std::ostream& out, const std::vector<MeasuredLoop>& loops);

}  // namespace orrery
