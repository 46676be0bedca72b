// Chapter 9. Printing claims and findings.
#include "apps/measure/claims/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "core/dtype.h"

namespace orrery::claims {
namespace {

constexpr size_t indent = 12;

// "  claim     Without positions, ..." with the lines after the first below the text.
std::string labelled(const std::string& label, const std::string& text) {
  std::string lines = wrapped(text, indent, table_width, indent);
  return lines.replace(2, label.size(), label);
}

Colour colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return Colour::green;
    case Verdict::partly: return Colour::yellow;
    case Verdict::does_not_hold: break;
  }
  return Colour::red;
}

i64 count_of(const std::vector<Measured>& all, Verdict verdict) {
  return std::count_if(all.begin(), all.end(), [&](const Measured& m) { return m.finding.verdict == verdict; });
}

}  // namespace

void print_names(std::ostream& out, const std::vector<Claim>& claims) {
  for (const Claim& claim : claims) out << claim.name << '\n' << wrapped(claim.says, 2, table_width, 2);
}

void print_measured(std::ostream& out, const Measured& measured, const Terminal& terminal) {
  const auto& [claim, finding] = measured;
  out << claim.name << '\n' << labelled("claim", claim.says) << labelled("source", claim.source);
  std::string label = "  measured  ";
  for (const std::string& line : finding.measured) {
    out << label << line << '\n';
    label = std::string(indent, ' ');
  }
  out << labelled("holds if", claim.holds_if) << "  verdict   "
      << coloured(name_of(finding.verdict), colour_of(finding.verdict), terminal) << "\n\n";
}

std::string summary_of(const std::vector<Measured>& all) {
  const i64 hold = count_of(all, Verdict::holds), do_not = count_of(all, Verdict::does_not_hold),
            partly = count_of(all, Verdict::partly);
  return std::to_string(all.size()) + (all.size() == 1 ? " claim: " : " claims: ") + std::to_string(hold) +
         (hold == 1 ? " holds, " : " hold, ") + std::to_string(do_not) + (do_not == 1 ? " does not, " : " do not, ") +
         std::to_string(partly) + " partly";
}

std::string claims_as_json(const std::vector<Measured>& all, size_t chosen) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [claim, finding] : all)
    rows.push_back({{"name", claim.name},
                    {"claim", claim.says},
                    {"source", claim.source},
                    {"measured", finding.measured},
                    {"holds_if", claim.holds_if},
                    {"verdict", name_of(finding.verdict)}});
  const nlohmann::ordered_json result{{"claims", std::move(rows)},
                                      {"hold", count_of(all, Verdict::holds)},
                                      {"do_not_hold", count_of(all, Verdict::does_not_hold)},
                                      {"partly", count_of(all, Verdict::partly)},
                                      {"complete", all.size() == chosen}};
  return result.dump(2) + "\n";
}

}  // namespace orrery::claims
