// Chapter 9. Running a table of small pieces by Google Benchmark. Without that library, only their names are known.
#include "apps/measure/bench/micro.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/options.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "core/files/json.h"

#ifdef ORRERY_HAS_BENCHMARK
#include <benchmark/benchmark.h>
#endif

namespace orrery {
namespace {

std::vector<Entry> chosen_entries(const MicroBench& bench, const BenchOptions& options) {
  std::vector<Entry> entries = bench.entries(options);
  std::erase_if(entries, [&](const Entry& entry) { return !matches_any(options.names, entry.name); });
  if (entries.empty())
    usage_error("bench " + bench.name, "nothing matches; orrery bench " + bench.name + " --list names all");
  return entries;
}

#ifdef ORRERY_HAS_BENCHMARK

constexpr size_t column_width = 9;

// The fastest of some runs.
double seconds_of_turn(const Work& work, int runs) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    work.prepare();
    fastest = std::min(fastest, seconds_of(work.run));
  }
  return fastest;
}

void measure(benchmark::State& state, const MicroBench& bench, const Entry& entry, const Trial& trial, double best) {
  std::vector<double> own, rival, ratios;
  const auto take_turn = [&](const Work& work, std::vector<double>& seconds) {
    seconds.push_back(seconds_of_turn(work, bench.turns ? 1 : 2));
  };
  for (auto _ : state) {
    const size_t turn = own.size();
    const bool with_rival = trial.rival && turn % bench.rival_every == 0, rival_first = turn % 2 == 1;
    if (with_rival && rival_first) take_turn(*trial.rival, rival);
    take_turn(trial.own, own);
    if (with_rival && !rival_first) take_turn(*trial.rival, rival);
    if (trial.rival) ratios.push_back(own.back() / rival.back());
    state.SetIterationTime(own.back());
  }
  const auto typical = [&](const std::vector<double>& seconds) {
    return bench.turns ? median(seconds) : *std::min_element(seconds.begin(), seconds.end());
  };
  const auto count = [&](const Work& work, const std::vector<double>& seconds, const std::string& time,
                         const std::string& rate) {
    if (!time.empty()) state.counters[time] = entry.calls * typical(seconds) / bench.time_unit;
    if (!rate.empty() && work.amount > 0) state.counters[rate] = work.amount / typical(seconds) / bench.rate_unit;
  };
  const bool has_rate = !bench.rate.empty();
  count(trial.own, own, bench.time, bench.rate);
  if (best > 0) state.counters["best"] = trial.own.amount / typical(own) / best;
  for (const auto& [column, value] : trial.besides) state.counters[column] = value;
  if (!trial.rival) return;
  count(*trial.rival, rival, has_rate ? "" : bench.rival, has_rate ? bench.rival : "");
  const double share = median(ratios);
  state.counters[bench.ratio] = has_rate ? trial.own.amount / trial.rival->amount / share : share;
  if (entry.most > 0 && share > entry.most) state.SetLabel(numbers("MISSED: at most %.3g", entry.most));
}

// Prints the counters of every entry in a line, and keeps Google Benchmark's own report as text in JSON.
class MicroReporter final : public benchmark::BenchmarkReporter {
 public:
  MicroReporter(const MicroBench& bench, const std::vector<Entry>& entries) : bench_(bench), entries_(entries) {
    for (const Entry& entry : entries) name_width_ = std::max(name_width_, entry.name.size());
    json_.SetOutputStream(&text_);
  }
  bool ReportContext(const Context& context) override { return json_.ReportContext(context); }
  void ReportRuns(const std::vector<Run>& runs) override {
    json_.ReportRuns(runs);
    for (const Run& run : runs) print(run);
  }
  void Finalize() override {
    json_.Finalize();
    for (const auto& [kind, rows] : kinds_) print_sum(kind, rows);
  }
  bool missed() const { return missed_; }
  std::string json() const { return text_.str(); }

 private:
  struct Row {
    std::string name;
    double time, ratio;
  };

  void print(const Run& run) {
    std::vector<std::string> columns{bench_.time, bench_.rate, bench_.rival, bench_.ratio};
    for (const auto& counter : run.counters)
      if (std::find(columns.begin(), columns.end(), counter.first) == columns.end()) columns.push_back(counter.first);
    std::erase_if(columns, [&](const std::string& column) { return !run.counters.contains(column); });
    if (columns != columns_) {
      columns_ = columns;
      std::cout << fitted("", name_width_);
      for (const std::string& column : columns) std::cout << numbers("%*s", width_of(column), column.c_str());
      std::cout << '\n';
    }
    const std::string& name = run.run_name.function_name;
    std::cout << fitted(name + (run.aggregate_name.empty() ? "" : " " + run.aggregate_name), name_width_);
    for (const std::string& column : columns) {
      const double x = run.counters.at(column);
      std::cout << numbers(x < 1000 ? "%*.3g" : "%*.0f", width_of(column), x);
    }
    std::cout << (run.report_label.empty() ? "" : "  ") << run.report_label << std::endl;
    missed_ = missed_ || !run.report_label.empty();
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    if (entry->kind.empty() || run.run_type != Run::RT_Iteration) return;
    kinds_[entry->kind].push_back({name, run.counters.at(bench_.time), run.counters.at(bench_.ratio)});
  }

  void print_sum(const std::string& kind, const std::vector<Row>& rows) const {
    double logarithms = 0, own = 0, rival = 0;
    for (const Row& row : rows) {
      logarithms += std::log(row.ratio);
      own += row.time;
      rival += row.time * row.ratio;
    }
    const Row& least =
        *std::min_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ratio < b.ratio; });
    std::cout << kind << ": " << bench_.ratio
              << numbers(" %.3f (geometric mean of %zu), least %.2f: ",
                         std::exp(logarithms / static_cast<double>(rows.size())), rows.size(), least.ratio)
              << least.name << numbers("; together %.4g and %.4g ", own, rival) << bench_.time << std::endl;
  }

  static int width_of(const std::string& column) { return static_cast<int>(std::max(column_width, column.size() + 2)); }

  const MicroBench& bench_;
  const std::vector<Entry>& entries_;
  benchmark::JSONReporter json_;
  std::ostringstream text_;
  size_t name_width_ = 0;
  std::vector<std::string> columns_;
  std::map<std::string, std::vector<Row>> kinds_;
  bool missed_ = false;
};

int run_entries(const MicroBench& bench, const BenchOptions& options, const std::vector<Entry>& entries) {
  const double best = bench.best ? bench.best() : 0;
  const Entry* ready = nullptr;
  Trial trial;
  for (const Entry& entry : entries) {
    auto* registered = benchmark::RegisterBenchmark(entry.name.c_str(), [&](benchmark::State& state) {
      if (ready != &entry) {  // Google Benchmark tries how many runs it takes
        trial = {};           // makes room
        trial = entry.trial();
        ready = &entry;
      }
      measure(state, bench, entry, trial, best);
    });
    registered->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (bench.turns)
      registered->Iterations(bench.turns(options));
    else if (std::getenv("BENCHMARK_MIN_TIME") == nullptr)  // which Google Benchmark reads itself
      registered->MinTime(bench.seconds);
  }
  MicroReporter reporter(bench, entries);
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  benchmark::ClearRegisteredBenchmarks();
  write_results(options, bench.name, parse_json_object(reporter.json(), "bench " + bench.name));
  return reporter.missed() ? failed : done;
}

#else

int run_entries(const MicroBench& bench, const BenchOptions&, const std::vector<Entry>&) {
  fail("bench " + bench.name,
       "this program was built without Google Benchmark. On Debian and Ubuntu: apt-get install libbenchmark-dev, then "
       "configure and build again");
}

#endif

}  // namespace

i64 steps_of(const BenchOptions& options) { return options.steps; }

int run_micro(const MicroBench& bench, const BenchOptions& options) {
  const std::vector<Entry> entries = chosen_entries(bench, options);
  if (options.list) {
    for (const Entry& entry : entries) std::cout << entry.name << '\n';
    return done;
  }
  announce(options);
  return run_entries(bench, options, entries);
}

}  // namespace orrery
