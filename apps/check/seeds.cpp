// Chapter 9. Proving with many seeds.
#include "apps/check/table.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/options.h"
#include "apps/program/progress.h"
#include "apps/program/terminal.h"
#include "autograd/check/proof.h"

namespace orrery {
namespace {

// `text` as a whole number from 0 to 999,999,999; -1 if it is not one.
i64 seed_of(const std::string& text) {
  constexpr i64 largest_seed = 999'999'999;
  i64 value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && std::to_string(value) == text && value <= largest_seed ? value : -1;
}

// What some seeds found.
struct SeedResults {
  size_t proven = 0, redrawn = 0;   // redrawn: how often inputs were drawn again because they showed nothing
  std::vector<std::string> alarms;  // correct rows that were reported as wrong

  void add(const SeedResults& other) {
    proven += other.proven;
    redrawn += other.redrawn;
    alarms.insert(alarms.end(), other.alarms.begin(), other.alarms.end());
  }
};

// Proves row after row; after Ctrl-C the results are incomplete.
SeedResults prove_seed(const std::vector<Row>& rows, i64 seed, const std::string& label, const Interrupt& interrupt,
                       LiveLine& live) {
  SeedResults results;
  for (const Row& row : rows) {
    if (interrupt.requested()) break;
    live.show(label + ", row " + std::to_string(results.proven + 1) + "/" + std::to_string(rows.size()) + " " +
              row.label());
    const Proof proof = prove(row.sample, {.mutants = false, .exact = false, .seed = static_cast<u64>(seed)});
    ++results.proven;
    results.redrawn += static_cast<size_t>(proof.redrawn);
    if (!proof) results.alarms.push_back("seed " + std::to_string(seed) + ", " + row.label() + ": " + proof.message());
  }
  return results;
}

// Whether there is anything to check: what a row computes has an input that is not empty.
bool has_coordinates(const Row& row, i64 seed) {
  const Checkable f = row.sample.build(f64, static_cast<u64>(seed));
  return std::any_of(f.leaves.begin(), f.leaves.end(),
                     [](const NamedParameter& x) { return x.value.value().count() > 0; });
}

}  // namespace

SeedRange seed_range(const std::string& text) {
  const size_t dots = text.find("..");
  const SeedRange range{seed_of(text.substr(0, dots)),
                        seed_of(dots == std::string::npos ? text : text.substr(dots + 2))};
  if (range.first < 0 || range.last < range.first)
    usage_error("--seeds", "'" + text + "' is not FIRST..LAST, such as 1..1000");
  return range;
}

int prove_seeds(const std::vector<Row>& rows, SeedRange seeds) {
  const Interrupt interrupt;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  LiveLine live(std::cerr, terminal);
  SeedResults all;
  i64 next = seeds.first;
  for (; next <= seeds.last && !interrupt.requested(); ++next) {
    const std::string label = "seed " + std::to_string(next) + " of " + std::to_string(seeds.last);
    const SeedResults results = prove_seed(rows, next, label, interrupt, live);
    if (results.proven < rows.size()) break;
    all.add(results);
    // If stderr is not a terminal, prints a line after every fiftieth of the seeds.
    if (!terminal.live && (next - seeds.first + 1) * 50 / seeds.count() > (next - seeds.first) * 50 / seeds.count())
      std::cerr << label << std::endl;
    live.clear();
    for (const std::string& alarm : results.alarms) std::cout << wrapped(harmless_lines(alarm), 0) << std::flush;
  }
  live.clear();
  const i64 finished = next - seeds.first;
  std::cout << finished << (finished == 1 ? " seed, " : " seeds, ") << all.proven << " checked, " << all.alarms.size()
            << " failed, " << all.redrawn << " drawn again\n"
            << std::flush;
  if (next <= seeds.last) {
    std::cerr << "stopped after " << finished << " of " << seeds.count() << " seeds; --seeds " << next << ".."
              << seeds.last << " proves the others\n";
    return interrupted;
  }
  if (!all.alarms.empty()) return failed;
  if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return has_coordinates(row, seeds.first); }))
    return done;
  std::cerr << nothing_checked;
  return failed;
}

}  // namespace orrery
