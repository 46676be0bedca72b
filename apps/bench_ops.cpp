// Chapter 9. Loops, measured at two sizes.
//
// Read next: apps/bench_attention.h
#include "apps/bench_ops.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/columns.h"
#include "apps/exit_code.h"
#include "apps/machine.h"
#include "apps/stopwatch.h"

namespace orrery {
namespace {

constexpr size_t loop_width = 32;
constexpr double seconds_for_a_loop = 0.1;

}  // namespace

double measured_speed(const Loop& loop) {
  return loop.bytes / fastest_seconds(seconds_for_a_loop, loop.run, loop.prepare);
}

std::vector<MeasuredLoop> measure_loops() {
  std::vector<MeasuredLoop> result;
  for (const Loop& loop : bench_loops(rows_in_cache, loop_columns))
    result.push_back({.name = loop.name, .in_cache = measured_speed(loop)});
  size_t i = 0;
  for (const Loop& loop : bench_loops(rows_beyond_cache, loop_columns)) result[i++].beyond_cache = measured_speed(loop);
  return result;
}

void print_loops(std::ostream& out, const std::vector<MeasuredLoop>& loops) {
  constexpr double kilobyte = 1024, bytes_of_row = 4.0 * loop_columns;
  out << fitted("matrices of", loop_width)
      << numbers("%13.0f KB%20.0f MB\n", rows_in_cache * bytes_of_row / kilobyte,
                 rows_beyond_cache * bytes_of_row / kilobyte / kilobyte)
      << fitted("loop", loop_width) << "      GB/s   triad           GB/s   triad\n";
  for (const MeasuredLoop& loop : loops) {
    out << fitted(loop.name, loop_width)
        << numbers("%10.1f%6.0f %%%15.1f%6.0f %%\n", 1e-9 * loop.in_cache, 1e2 * loop.in_cache / loops[0].in_cache,
                   1e-9 * loop.beyond_cache, 1e2 * loop.beyond_cache / loops[0].beyond_cache);
  }
}

int bench_ops(const BenchOptions& options) {
  print_start(std::cerr, {.seed = options.seed});
  const std::vector<MeasuredLoop> loops = measure_loops();
  print_loops(std::cout, loops);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const MeasuredLoop& loop : loops) {
    rows.push_back({{"name", loop.name},
                    {"gbyte_per_second_in_cache", 1e-9 * loop.in_cache},
                    {"gbyte_per_second_beyond_cache", 1e-9 * loop.beyond_cache}});
  }
  keep(options, "ops",
       {{"bytes_in_cache", 4 * rows_in_cache * loop_columns},
        {"bytes_beyond_cache", 4 * rows_beyond_cache * loop_columns},
        {"loops", rows}});
  return done;
}

}  // namespace orrery
