// Chapter 9. `orrery bench busy`: how long a training step takes where other programs want the cores too.
//
// Threads of a loop wait for the last of them, and a thread whose core another program has stands still for
// milliseconds; core/machine/crowding.h says what is done about it. Beside one program that computes, and beside a
// second training, a step with all threads may take as long as one with a single thread does there.
// Serves: core/machine/parallel.h
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/configs.h"

namespace orrery {

/// Seconds of a step, with all threads and with one. `bounded`: all must not take longer than one.
struct BusyRow {
  std::string beside;
  double all, one;
  bool bounded;
  /// Within 5 %, what such a measurement varies by.
  bool kept() const { return !bounded || all <= 1.05 * one; }
};

/// Rows: alone, beside one program that computes, beside a second training with as many threads.
std::vector<BusyRow> measure_busy(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns.
void print_busy(std::ostream& out, const std::string& config, i64 threads, const std::vector<BusyRow>& rows);

}  // namespace orrery
