// Chapter 9. Micro-benchmarks: small pieces of work, timed again and again beside another way to do them.
//
// Each bench of this kind is one table of entries. Google Benchmark decides how often an entry runs. Where it has a
// rival, the two take turns, so that neither a machine that slows down nor a single slow run changes their ratio, the
// median of the ratios of neighbours.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// What is timed.
struct Work {
  std::function<void()> run{};
  double amount = 0;                      ///< what one run does: operations, bytes, tokens; 0: it has no rate
  std::function<void()> prepare = [] {};  ///< before each run, not timed
};

/// An entry's work, with the tensors that it needs.
struct Trial {
  Work own;
  std::optional<Work> rival{};
  std::map<std::string, double> besides{};  ///< further columns
};

struct Entry {
  std::string name;
  std::function<Trial()> trial;  ///< called when the entry's turn comes
  double calls = 1;              ///< the time that is shown is that of so many runs
  std::string kind{};            ///< entries of one kind are summed up in a line below the table; "" for none
  double most = 0;               ///< a larger ratio of times is MISSED; 0: there is no bound
};

/// One sub-command of `orrery bench`.
struct MicroBench {
  std::string name, what, help;  ///< of the sub-command; `help` is the end of its help
  std::vector<Entry> (*entries)(const BenchOptions&);
  void (*add_options)(CLI::App&, BenchOptions&) = [](CLI::App&, BenchOptions&) {};
  /// Columns; "" for none. `ratio` is that of the rates if the bench has a rate, or else that of the times.
  std::string time{}, rate{}, rival{}, ratio{};
  double time_unit = 1e-6, rate_unit = 1e9;  ///< a microsecond; 10^9 operations or bytes per second
  double (*best)() = nullptr;                ///< the largest rate there is: the column "best" shows the share of it
  /// How many turns there are, of which the median counts. Without: kernels, of which the fastest run counts, and the
  /// faster of two in a row, since one may find its data in no cache.
  i64 (*turns)(const BenchOptions&) = nullptr;
  double seconds = 0.05;   ///< of all runs of a kernel, at least
  size_t rival_every = 1;  ///< the rival has a turn at every so many of the entry's
};

/// Runs the entries that match `options.names` and prints the table, or lists them if `options.list`. Returns `failed`
/// if one is MISSED. Errors: nothing matches; the program was built without Google Benchmark.
int run_micro(const MicroBench& bench, const BenchOptions& options);

/// `options.steps`, for `turns`.
i64 steps_of(const BenchOptions& options);

MicroBench gemm_bench();
MicroBench ops_bench();
MicroBench fused_bench();
MicroBench attention_bench();
MicroBench masks_bench();
MicroBench decode_bench();
MicroBench promises_bench();
MicroBench busy_bench();

}  // namespace orrery
