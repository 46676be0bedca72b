// Chapter 9. `orrery bench busy`: how long a training step takes while other programs use the cores too.
//
// The threads of a loop wait for the last one, and a thread whose core is taken by another program stops for
// milliseconds; core/machine/crowding.h describes the remedy. The bound: beside one busy program, and beside a second
// training, a step with all threads takes no longer than a step with a single thread.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/configs.h"

namespace orrery {

/// Seconds of a step, with all threads and with one. If `bounded`, all threads must not take longer than one.
struct BusyRow {
  std::string beside;
  double all, one;
  bool bounded;
  /// Within 5 %, since such measurements vary by that much.
  bool kept() const { return !bounded || all <= 1.05 * one; }
};

/// Rows: alone, beside one busy program, beside a second training with as many threads.
std::vector<BusyRow> measure_busy(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns.
void print_busy(std::ostream& out, const std::string& config, i64 threads, const std::vector<BusyRow>& rows);

}  // namespace orrery
