// Chapter 9. Proving with many seeds, and the file of results.
#include "apps/check/seeds.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>

#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/interrupt.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "autograd/check/proof.h"
#include "core/files/file.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

constexpr i64 largest_seed = 999'999'999;
constexpr std::string_view seed_line_begin = R"({"seed":)";

// `text` as a whole number from 0 to 999,999,999; -1 if it is not one.
i64 seed_of(const std::string& text) {
  i64 value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && std::to_string(value) == text && value <= largest_seed ? value : -1;
}

std::string line_of(const SeedResult& result) {
  Json failed = Json::array();
  for (const FalseAlarm& alarm : result.failed) failed.push_back({{"row", alarm.row}, {"message", alarm.message}});
  const Json line = {{"seed", result.seed},       {"names", result.names}, {"rows", result.rows},
                     {"redrawn", result.redrawn}, {"failed", failed},      {"seconds", result.seconds}};
  return json_text(line) + '\n';
}

SeedResult result_of(const std::string& line) {
  constexpr std::string_view operation = "seed";
  constexpr i64 any = std::numeric_limits<i32>::max();
  const Json json = parse_json_object(line, operation);
  nn::config_json::Reader read(operation, json, nn::config_json::Fields::all);
  SeedResult result{.names = {}, .failed = {}};
  read("seed", result.seed, 0, largest_seed);
  read("names", result.names);
  read("rows", result.rows, 0, any);
  read("redrawn", result.redrawn, 0, any);
  read.for_each("failed", [&](nn::config_json::Reader& read_alarm) {
    FalseAlarm& alarm = result.failed.emplace_back();
    read_alarm("row", alarm.row);
    read_alarm("message", alarm.message);
  });
  read("seconds", result.seconds);
  return result;
}

// "" if the file does not exist. Error: the system cannot read it, so that nothing is written over it.
std::string text_of_file(const std::string& path) {
  return std::filesystem::exists(path) ? InputFile(path).text() : "";
}

// Whether `text`, which may be nothing, is what is left of a line that was cut off.
bool begins_seed_line(std::string_view text) {
  return text.starts_with(seed_line_begin) || seed_line_begin.starts_with(text);
}

// Proves row after row; after Ctrl-C the result is incomplete.
SeedResult prove_seed(const std::vector<Row>& rows, const std::vector<std::string>& names, i64 seed,
                      const std::string& label, const Interrupt& interrupt, LiveLine& live) {
  const double start = steady_seconds();
  SeedResult result{.seed = seed, .names = names, .failed = {}};
  for (const Row& row : rows) {
    if (interrupt.requested()) break;
    live.show(label + ", row " + std::to_string(result.rows + 1) + "/" + std::to_string(rows.size()) + " " +
              row.label());
    const Proof proof = prove(row.sample, {.mutants = false, .exact = false, .seed = static_cast<u64>(seed)});
    ++result.rows;
    result.redrawn += proof.redrawn;
    if (!proof) result.failed.push_back({row.label(), proof.message()});
  }
  result.seconds = steady_seconds() - start;
  return result;
}

// Whether there is anything to check: what a row computes has an input that is not empty.
bool has_coordinates(const Row& row, i64 seed) {
  const Checkable f = row.sample.build(f64, static_cast<u64>(seed));
  return std::any_of(f.leaves.begin(), f.leaves.end(),
                     [](const NamedParameter& x) { return x.value.value().count() > 0; });
}

void print_alarms(std::ostream& out, const SeedResult& result) {
  for (const FalseAlarm& alarm : result.failed)
    out << wrapped(harmless_lines("seed " + std::to_string(result.seed) + ", " + alarm.row + ": " + alarm.message), 0)
        << std::flush;
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

SeedFile::SeedFile(std::string path, const std::vector<std::string>& names, size_t rows) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string text = text_of_file(path_), whole = text.substr(0, text.rfind('\n') + 1);
  std::istringstream lines(whole);
  i64 number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    SeedResult result;
    try {
      result = result_of(line);
    } catch (const Error& error) {
      fail("read " + path_, "is not a file of gradcheck --seeds; name another, or remove it (line ", number, ": ",
           std::string_view(error.what()), ")");
    }
    check(result.names == names && result.rows == rows, "gradcheck", "--resume ", path_,
          " holds the results of other rows; name another file, or remove it");
    results_[result.seed] = std::move(result);
  }
  check(begins_seed_line(std::string_view(text).substr(whole.size())), "read " + path_,
        "is not a file of gradcheck --seeds; name another, or remove it");
  write_text(path_, whole);
}

void SeedFile::add(const SeedResult& result) {
  if (!path_.empty()) {
    AppendedFile file(path_);
    file.append(line_of(result));
    file.close();
  }
  results_[result.seed] = result;
}

int prove_seeds(const std::vector<Row>& rows, const std::vector<std::string>& names, SeedRange seeds,
                const std::string& path) {
  SeedFile file(path, names, rows.size());
  const Interrupt interrupt;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  LiveLine live(std::cerr, terminal);
  size_t proven = 0, wrong = 0, redrawn = 0;
  i64 finished = 0;
  for (i64 seed = seeds.first; seed <= seeds.last && !interrupt.requested(); ++seed) {
    const std::string label = "seed " + std::to_string(seed) + " of " + std::to_string(seeds.last);
    if (!file.results().contains(seed)) {
      const SeedResult result = prove_seed(rows, names, seed, label, interrupt, live);
      if (result.rows < rows.size()) break;
      file.add(result);
      // If stderr is not a terminal, prints a line after every fiftieth of the seeds.
      if (!terminal.live && (seed - seeds.first + 1) * 50 / seeds.count() > (seed - seeds.first) * 50 / seeds.count())
        std::cerr << label << std::endl;
    }
    const SeedResult& result = file.results().at(seed);
    live.clear();
    print_alarms(std::cout, result);
    ++finished;
    proven += result.rows;
    wrong += result.failed.size();
    redrawn += static_cast<size_t>(result.redrawn);
  }
  live.clear();
  std::cout << finished << (finished == 1 ? " seed, " : " seeds, ") << proven << " checked, " << wrong << " failed, "
            << redrawn << " drawn again\n"
            << std::flush;
  if (interrupt.requested()) {
    std::cerr << "stopped after " << finished << " of " << seeds.count() << " seeds"
              << (path.empty() ? "" : "; the same command continues from there") << '\n';
    return interrupted;
  }
  if (wrong > 0) return failed;
  if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return has_coordinates(row, seeds.first); }))
    return done;
  std::cerr << nothing_checked;
  return failed;
}

}  // namespace orrery
