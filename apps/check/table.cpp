// Chapter 9. The columns of the table: what was checked, the worst error, and the time it took.
#include "apps/check/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "core/files/json.h"

namespace orrery {
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

}  // namespace orrery
