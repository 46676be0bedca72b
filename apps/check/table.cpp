// Chapter 9. The rows of the table of proofs; that table, and the one of mutants.
#include "apps/check/table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/tasks/translate/rivals/states.h"
#include "autograd/check/samples.h"
#include "core/files/json.h"
#include "nn/check/samples.h"

namespace orrery {
namespace {

// The "nn/" or "rivals/" of a layer may be left out.
bool matches(const std::string& pattern, const Row& row) {
  const std::string& name = row.sample.name;
  for (const std::string& text : {row.name, row.label(), name, name + ", " + row.sample.variant})
    if (matches_any({pattern}, text)) return true;
  return false;
}

}  // namespace

std::string Row::label() const { return sample.variant.empty() ? name : name + ", " + sample.variant; }

std::vector<Row> operation_rows() {
  std::vector<Row> rows;
  for (const Sample& sample : operation_samples()) rows.push_back({sample.name, sample});
  return rows;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = operation_rows();
  for (const Sample& sample : nn::module_samples()) rows.push_back({"nn/" + sample.name, sample});
  for (const Sample& sample : translate::rival_samples()) rows.push_back({"rivals/" + sample.name, sample});
  return rows;
}

std::vector<Row> chosen_rows(const std::vector<Row>& rows, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return rows;
  for (const std::string& pattern : patterns) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return matches(pattern, row); });
    if (!known)
      usage_error("gradcheck", "no operation or layer is called '" + pattern + "'; orrery gradcheck --list names all");
  }
  std::vector<Row> chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen), [&](const Row& row) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(p, row); });
  });
  return chosen;
}

void list_rows(std::ostream& out, const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows)
    out << std::left << std::setw(static_cast<int>(width)) << row.name << "  " << row.sample.variant << '\n';
}

namespace {

constexpr size_t text_width = 33, where_width = 13;

}  // namespace

void print_proof_header(std::ostream& out) {
  out << fitted("name, variant", text_width) << " in coords error " << fitted("where", where_width)
      << "    norm kinks zeros   f32    ms" << std::endl;
}

void print_proof(std::ostream& out, const ProvenRow& proven, const Terminal& terminal, const std::string& message) {
  const auto& [row, proof] = proven;
  const GradcheckReport& report = proof.gradients;
  out << fitted(row.label(), text_width)
      << numbers("%3ld%7ld%6.0e ", report.inputs, report.coordinates, report.worst_error)
      << fitted_end(report.worst_at, where_width)
      << numbers("%8.1e%6ld%6zu%6.0e%6.0f ", report.gradient_norm, report.skipped, report.zeros.size(), proof.f32_error,
                 1000 * proof.seconds)
      << (proof ? coloured("ok", Colour::green, terminal) : coloured("FAIL", Colour::red, terminal)) << '\n';
  const bool label_cut = row.label().size() > text_width, where_cut = report.worst_at.size() > where_width;
  if (label_cut || where_cut)
    out << wrapped((label_cut ? row.label() : "") + (label_cut && where_cut ? ": " : "") +
                       (where_cut ? "worst at " + report.worst_at : ""),
                   4);
  if (!message.empty()) out << wrapped(message, 2);
  out << std::flush;
}

void print_zeros(std::ostream& out, const std::vector<ProvenRow>& table) {
  std::string lines;
  for (const auto& [row, proof] : table)
    for (const DeclaredZero& zero : proof.gradients.zeros)
      lines += wrapped(row.label() + ": " + zero.name + ", " + zero.reason, 2);
  if (!lines.empty()) out << "\ndeclared to be zero, and found to be zero:\n" << lines << '\n';
}

std::string proofs_as_json(const std::vector<ProvenRow>& table, i64 seed, size_t chosen) {
  Json rows = Json::array();
  for (const auto& [row, proof] : table) {
    const GradcheckReport& report = proof.gradients;
    Json zeros = Json::array(), parts = Json::array();
    for (const DeclaredZero& zero : report.zeros) zeros.push_back({{"name", zero.name}, {"reason", zero.reason}});
    for (const ProofPart& part : proof.parts)
      parts.push_back({{"name", part.name}, {"ok", part.ok}, {"detail", part.text()}});
    rows.push_back({{"name", row.name},
                    {"variant", row.sample.variant},
                    {"ok", static_cast<bool>(proof)},
                    {"inputs", report.inputs},
                    {"coordinates", report.coordinates},
                    {"worst_error", report.worst_error},
                    {"worst_at", report.worst_at},
                    {"gradient_norm", report.gradient_norm},
                    {"kinks_skipped", report.skipped},
                    {"redrawn", proof.redrawn},
                    {"zeros", zeros},
                    {"f32_error", proof.f32_error},
                    {"seconds", proof.seconds},
                    {"parts", parts}});
  }
  const auto failed = std::count_if(table.begin(), table.end(), [](const ProvenRow& row) { return !row.proof; });
  const Json all = {{"seed", seed},     {"complete", table.size() == chosen},
                    {"chosen", chosen}, {"checked", table.size()},
                    {"failed", failed}, {"rows", rows}};
  return json_text(all, 2) + '\n';
}

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
