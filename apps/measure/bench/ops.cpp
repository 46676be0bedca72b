// Chapter 9. Loops, measured at two sizes.
#include "apps/measure/bench/ops.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"

namespace orrery {
namespace {

constexpr size_t loop_width = 34;
constexpr double seconds_for_a_loop = 0.1;

double share(double speed, double of) { return std::min(999.0, 1e2 * speed / of); }

}  // namespace

double measured_speed(const Loop& loop) {
  return loop.bytes / fastest_seconds(seconds_for_a_loop, loop.run, loop.prepare);
}

double best_of_triads(const std::vector<double>& speeds, std::ostream& notes) {
  const auto [least, most] = std::minmax_element(speeds.begin(), speeds.end());
  if (*least < 0.8 * *most) {
    notes << numbers(
        "warning: the triad ran at %.0f to %.0f GB/s; something else uses this machine, and no figure here "
        "is worth much\n",
        1e-9 * *least, 1e-9 * *most);
  }
  return *most;
}

std::vector<MeasuredLoop> measure_loops(std::ostream& notes) {
  std::vector<MeasuredLoop> result;
  for (const auto& [rows, speed] :
       {std::pair{rows_in_cache, &MeasuredLoop::in_cache}, std::pair{rows_beyond_cache, &MeasuredLoop::beyond_cache}}) {
    const std::vector<Loop> loops = bench_loops(rows, loop_columns);
    result.resize(loops.size());
    std::vector<double> triads;
    for (size_t i = 0; i < loops.size(); ++i) {
      result[i].name = loops[i].name;
      if (i > 0) result[i].*speed = measured_speed(loops[i]);
      if (i == 0 || i == loops.size() / 2 || i + 1 == loops.size()) triads.push_back(measured_speed(loops[0]));
    }
    result[0].*speed = best_of_triads(triads, notes);
  }
  return result;
}

void print_loops(std::ostream& out, const std::vector<MeasuredLoop>& loops) {
  constexpr double kilobyte = 1024, bytes_of_row = 4.0 * loop_columns;
  out << fitted("matrices of", loop_width)
      << numbers("%13.0f KB%21.0f MB\n", rows_in_cache * bytes_of_row / kilobyte,
                 rows_beyond_cache * bytes_of_row / kilobyte / kilobyte)
      << fitted("loop", loop_width) << "      GB/s    triad           GB/s    triad\n";
  for (const MeasuredLoop& loop : loops) {
    out << fitted(loop.name, loop_width)
        << numbers("%10.1f%7.0f %%%15.1f%7.0f %%\n", 1e-9 * loop.in_cache, share(loop.in_cache, loops[0].in_cache),
                   1e-9 * loop.beyond_cache, share(loop.beyond_cache, loops[0].beyond_cache));
  }
}

int bench_ops(const BenchOptions& options) {
  announce(options);
  const std::vector<MeasuredLoop> loops = measure_loops(std::cerr);
  print_loops(std::cout, loops);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const MeasuredLoop& loop : loops) {
    rows.push_back({{"name", loop.name},
                    {"gbyte_per_second_in_cache", 1e-9 * loop.in_cache},
                    {"gbyte_per_second_beyond_cache", 1e-9 * loop.beyond_cache}});
  }
  write_results(options, "ops",
                {{"bytes_in_cache", 4 * rows_in_cache * loop_columns},
                 {"bytes_beyond_cache", 4 * rows_beyond_cache * loop_columns},
                 {"loops", rows}});
  return done;
}

}  // namespace orrery
