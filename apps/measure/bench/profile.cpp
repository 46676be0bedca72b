// Chapter 9. The profile: measuring, sorting and printing it.
#include "apps/measure/bench/profile.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"

namespace orrery {
namespace {

constexpr size_t operation_width = 36, direction_width = 10;

// Seconds of each part, over all observed steps.
struct PartTimes {
  OperationTimes operations;
  double pass = 0, update = 0;
};

void observed_step(BenchTraining& training, PartTimes& times) {
  {
    const ObserverScope scope(times.operations);
    times.pass += seconds_of([&] { training.pass(); });
  }
  times.update += seconds_of([&] { training.update(); });
}

std::vector<ProfileRow> rows_from(const PartTimes& times, i64 steps) {
  const double n = static_cast<double>(steps);
  std::vector<ProfileRow> rows;
  double tape = times.pass;
  for (const OperationTime& op : times.operations.summed_up()) {
    rows.push_back({.name = op.shape.empty() ? op.name : op.name + ' ' + op.shape,
                    .direction = op.backward ? "backward" : "forward",
                    .calls = static_cast<double>(op.calls) / n,
                    .seconds = op.seconds / n,
                    .flop_per_second = op.flop / op.seconds,
                    .bytes_per_second = op.bytes / op.seconds});
    tape -= op.seconds;
  }
  rows.push_back({.name = "clipping and Adam", .direction = "", .calls = 1, .seconds = times.update / n});
  rows.push_back({.name = "the tape, and the observer", .direction = "", .calls = 1, .seconds = tape / n});
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (ProfileRow& row : rows) row.share = row.seconds * n / (times.pass + times.update);
  return rows;
}

std::string rate_of(const ProfileRow& row) {
  if (row.flop_per_second > 0) return numbers("%9.1f GF/s", 1e-9 * row.flop_per_second);
  if (row.bytes_per_second > 0) return numbers("%9.1f GB/s", 1e-9 * row.bytes_per_second);
  return "";
}

nlohmann::ordered_json as_json(const ProfileRow& row) {
  return {{"name", row.name},
          {"direction", row.direction},
          {"calls", row.calls},
          {"ms", 1e3 * row.seconds},
          {"share", row.share},
          {"gflop_per_second", 1e-9 * row.flop_per_second},
          {"gbyte_per_second", 1e-9 * row.bytes_per_second}};
}

}  // namespace

double noise_of_median(std::vector<double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const size_t quarter = values.size() / 4;
  return (values[values.size() - 1 - quarter] - values[quarter]) / std::sqrt(static_cast<double>(values.size()));
}

Profile measure_profile(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  for (int i = 0; i < warm_up_steps; ++i) training.step();
  PartTimes times;
  std::vector<double> observed, unobserved, differences;
  for (i64 i = 0; i < options.steps; ++i) {
    unobserved.push_back(seconds_of([&] { training.step(); }));
    observed.push_back(seconds_of([&] { observed_step(training, times); }));
    differences.push_back(observed.back() - unobserved.back());
  }
  return {.rows = rows_from(times, options.steps),
          .seconds = (times.pass + times.update) / static_cast<double>(options.steps),
          .observed = median(observed),
          .unobserved = median(unobserved),
          .noise = noise_of_median(differences)};
}

void print_profile(std::ostream& out, const Profile& profile) {
  out << fitted("operation", operation_width) << fitted("", direction_width)
      << "  calls   ms a step   share          rate\n";
  for (const ProfileRow& row : profile.rows) {
    out << fitted(row.name, operation_width) << fitted(row.direction, direction_width)
        << numbers("%7.0f%12.3f%6.1f %%", row.calls, 1e3 * row.seconds, 1e2 * row.share) << rate_of(row) << '\n';
  }
  out << fitted("a step", operation_width + direction_width)
      << numbers("%19.3f%6.1f %%\n", 1e3 * profile.seconds, 100.0)
      << numbers("median step %.3f ms observed, %.3f ms not: what the observer costs ", 1e3 * profile.observed,
                 1e3 * profile.unobserved)
      << (profile.observed - profile.unobserved > profile.noise ? numbers("is %.1f %%\n", 1e2 * profile.overhead())
                                                                : "cannot be told\n");
}

int bench_profile(const BenchOptions& options) {
  const BenchConfig config = scaled(bench_config(options.config), options.batch, options.length, options.width);
  announce(options);
  const Profile profile = measure_profile(config, options);
  print_profile(std::cout, profile);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ProfileRow& row : profile.rows) rows.push_back(as_json(row));
  write_results(options, "profile",
                {{"config", as_json(config)},
                 {"steps", options.steps},
                 {"dropout", config.dropout_or_own(options.dropout)},
                 {"step_ms", 1e3 * profile.seconds},
                 {"median_ms_observed", 1e3 * profile.observed},
                 {"median_ms_unobserved", 1e3 * profile.unobserved},
                 {"rows", rows}});
  return done;
}

}  // namespace orrery
