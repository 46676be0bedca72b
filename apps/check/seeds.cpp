// Chapter 9. Proving with many seeds, and the file of results.
//
// Serves: autograd/check/proof.h
#include "apps/check/seeds.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/progress.h"
#include "autograd/check/proof.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// `text` as a whole number from 0 to 999,999,999; -1 if it is not one.
i64 whole_number(const std::string& text) {
  i64 value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && std::to_string(value) == text && value < 1'000'000'000 ? value : -1;
}

std::string line_of(const SeedResult& result) {
  Json failed = Json::array();
  for (const FalseAlarm& alarm : result.failed) failed.push_back({{"row", alarm.row}, {"message", alarm.message}});
  const Json line = {{"seed", result.seed},       {"names", result.names}, {"rows", result.rows},
                     {"redrawn", result.redrawn}, {"failed", failed},      {"seconds", result.seconds}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

SeedResult result_of(const std::string& line) {
  const Json json = Json::parse(line);
  SeedResult result{.seed = json.at("seed"),
                    .names = json.at("names"),
                    .rows = json.at("rows"),
                    .redrawn = json.at("redrawn"),
                    .failed = {},
                    .seconds = json.at("seconds")};
  for (const Json& alarm : json.at("failed")) result.failed.push_back({alarm.at("row"), alarm.at("message")});
  return result;
}

// The complete lines of a file; "" if it does not exist.
std::string whole_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str().substr(0, text.str().rfind('\n') + 1);
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
    const Proof proof = prove(row.sample, {.mutants = false, .seed = static_cast<u64>(seed)});
    ++result.rows;
    result.redrawn += proof.redrawn;
    if (!proof) result.failed.push_back({row.label(), proof.message()});
  }
  result.seconds = steady_seconds() - start;
  return result;
}

void print_alarms(std::ostream& out, const SeedResult& result) {
  for (const FalseAlarm& alarm : result.failed)
    out << broken("seed " + std::to_string(result.seed) + ", " + alarm.row + ": " + alarm.message, 0) << std::flush;
}

}  // namespace

SeedRange seed_range(const std::string& text) {
  const size_t dots = text.find("..");
  const SeedRange range{whole_number(text.substr(0, dots)),
                        whole_number(dots == std::string::npos ? text : text.substr(dots + 2))};
  if (range.first < 0 || range.last < range.first)
    usage_error("--seeds", "'" + text + "' is not FIRST..LAST, such as 1..1000");
  return range;
}

SeedFile::SeedFile(std::string path, const std::vector<std::string>& names, size_t rows) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string text = whole_lines(path_);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    SeedResult result;
    try {
      result = result_of(line);
    } catch (const nlohmann::json::exception&) {
      fail("gradcheck", "--resume ", path_, " is not a file of gradcheck --seeds; name another, or remove it");
    }
    check(result.names == names && result.rows == rows, "gradcheck", "--resume ", path_,
          " holds the results of other rows; name another file, or remove it");
    results_[result.seed] = std::move(result);
  }
  write_text(path_, text);
}

void SeedFile::add(const SeedResult& result) {
  if (!path_.empty()) {
    std::ofstream file(path_, std::ios::binary | std::ios::app);
    file << line_of(result) << std::flush;
    check(file.good(), "gradcheck", "cannot write to ", path_);
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
  return wrong == 0 ? done : failed;
}

}  // namespace orrery
