// Chapter 9. `orrery bench ops`: how fast every loop other than a matrix product is, compared with the triad.
//
// The triad is a_i = b_i + s c_i (apps/measure/bench/loops.h). Each loop is measured at two sizes: with matrices that
// stay in the caches of the cores, and with matrices that do not fit into any cache.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/loops.h"

namespace orrery {

/// Matrices with rows of 512 numbers in f32: 256 KB, and 64 MB.
inline constexpr i64 loop_columns = 512, rows_in_cache = 128, rows_beyond_cache = 32768;

/// The bytes per second of a loop. Each byte that must be read or written counts once.
struct MeasuredLoop {
  std::string name;
  double in_cache = 0, beyond_cache = 0;
};

/// Bytes per second in its fastest run.
double measured_speed(const Loop& loop);
/// Every loop at both sizes. The first one is the triad, which is measured three times at each size: at the start, in
/// the middle and at the end. The best counts. If they differ by more than a fifth, the machine is busy: warns on
/// `notes`.
std::vector<MeasuredLoop> measure_loops(std::ostream& notes);

/// The largest of `speeds`; warns on `notes` if the smallest is less than 0.8 of it.
double best_of_triads(const std::vector<double>& speeds, std::ostream& notes);

/// At most 100 columns wide. Shares are relative to the first row, and at most 999 %.
void print_loops(std::ostream& out, const std::vector<MeasuredLoop>& loops);

}  // namespace orrery
