// Chapter 9. Counting mutants by operation and by the check that caught them.
#include "apps/check/mutants.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/columns.h"
#include "core/files/json.h"

namespace orrery {
namespace {

using Fate = Mutant::Fate;

struct CheckColumn {
  GradientCheck check;
  const char* header;  // as wide as its column
};
constexpr std::array<CheckColumn, 5> columns{{{GradientCheck::coordinate, " coordinate"},
                                              {GradientCheck::direction, " direction"},
                                              {GradientCheck::missing_gradient, " no gradient"},
                                              {GradientCheck::shape, " shape"},
                                              {GradientCheck::error, " error"}}};

// One line of the table.
struct Tally {
  MutantCount count;
  std::array<i64, columns.size() + 1> caught_by{};  // the last one is for all other checks
};

// The line of a mutant. All mutants of an operation share one; those of the engine have theirs, such as
// "engine: no un-broadcast".
std::string line_of(const Mutant& mutant) {
  return mutant.operation == "engine" ? "engine: " + mutant.change : mutant.operation;
}

void add(Tally& tally, const Mutant& mutant) {
  if (mutant.fate == Fate::equivalent) {
    ++tally.count.equivalent;
    return;
  }
  ++tally.count.mutants;
  if (mutant.fate == Fate::survived) return;
  ++tally.count.caught;
  const auto column =
      std::find_if(columns.begin(), columns.end(), [&](const CheckColumn& c) { return c.check == mutant.caught_by; });
  ++tally.caught_by[static_cast<size_t>(column - columns.begin())];
}

constexpr size_t mutated_width = 23;

void print_line(std::ostream& out, const std::string& name, const Tally& tally) {
  out << fitted(name, mutated_width) << numbers("%8ld%7ld", tally.count.mutants, tally.count.caught);
  for (size_t i = 0; i < columns.size(); ++i)
    out << numbers("%*ld", static_cast<int>(std::string(columns[i].header).size()), tally.caught_by[i]);
  out << numbers("%6ld%11ld", tally.caught_by.back(), tally.count.equivalent) << '\n';
}

}  // namespace

MutantCount count_mutants(const std::vector<MutatedRow>& table) {
  Tally all;
  for (const MutatedRow& row : table)
    for (const Mutant& mutant : row.report.mutants) add(all, mutant);
  all.count.rows_not_mutated =
      std::count_if(table.begin(), table.end(), [](const MutatedRow& row) { return !row.error.empty(); });
  return all.count;
}

void print_mutants(std::ostream& out, const std::vector<MutatedRow>& table) {
  std::map<std::string, Tally> operations, engine;
  for (const MutatedRow& row : table)
    for (const Mutant& mutant : row.report.mutants)
      add((mutant.operation == "engine" ? engine : operations)[line_of(mutant)], mutant);
  out << fitted("operation", mutated_width) << " mutants caught";
  for (const CheckColumn& column : columns) out << column.header;
  out << " other equivalent\n";
  for (const auto& [name, tally] : operations) print_line(out, name, tally);
  for (const auto& [name, tally] : engine) print_line(out, name, tally);
}

void print_equivalent(std::ostream& out, const std::vector<MutatedRow>& table) {
  std::string lines;
  for (const MutatedRow& row : table) {
    std::map<std::string, std::map<std::string, std::string>> reasons;  // reason -> "input 0 of add" -> changes
    for (const Mutant& mutant : row.report.mutants) {
      if (mutant.fate != Fate::equivalent) continue;
      const std::string place =
          (mutant.input < 0 ? "" : "input " + std::to_string(mutant.input) + " of ") + mutant.operation;
      std::string& changes = reasons[mutant.why()][place];
      if ((", " + changes + ",").find(", " + mutant.change + ",") == std::string::npos)
        changes += (changes.empty() ? "" : ", ") + mutant.change;
    }
    for (const auto& [why, places] : reasons) {
      lines += wrapped(row.row.label() + " (" + why + ")", 2);
      for (const auto& [place, changes] : places) lines += wrapped(place + ": " + changes, 4);
    }
  }
  if (!lines.empty()) out << "\nequivalent, since they change no gradient:\n" << lines << '\n';
}

void print_uncaught(std::ostream& out, const MutatedRow& row) {
  if (!row.error.empty()) out << wrapped("FAIL " + row.row.label() + ": " + row.error, 0);
  for (const Mutant& mutant : row.report.mutants) {
    if (mutant.fate != Fate::survived) continue;
    std::ostringstream text;
    text << "SURVIVED " << row.row.label() << ": " << mutant << " (" << mutant.why() << ')';
    out << wrapped(text.str(), 0);
  }
}

std::string mutants_as_json(const std::vector<MutatedRow>& table, i64 seed, size_t chosen) {
  constexpr std::array fates{"caught", "equivalent", "survived"};
  Json mutants = Json::array();
  Json not_mutated = Json::array();
  for (const MutatedRow& row : table) {
    if (!row.error.empty())
      not_mutated.push_back({{"name", row.row.name}, {"variant", row.row.sample.variant}, {"error", row.error}});
    for (const Mutant& mutant : row.report.mutants) {
      mutants.push_back({{"name", row.row.name},
                         {"variant", row.row.sample.variant},
                         {"operation", mutant.operation},
                         {"contribution", mutant.contribution},
                         {"input", mutant.input},
                         {"change", mutant.change},
                         {"fate", fates[static_cast<size_t>(mutant.fate)]},
                         {"why", mutant.why()}});
    }
  }
  const MutantCount count = count_mutants(table);
  const Json all = {{"seed", seed},           {"complete", table.size() == chosen}, {"mutants", count.mutants},
                    {"caught", count.caught}, {"equivalent", count.equivalent},     {"rows_not_mutated", not_mutated},
                    {"list", mutants}};
  return json_text(all, 2) + '\n';
}

}  // namespace orrery
