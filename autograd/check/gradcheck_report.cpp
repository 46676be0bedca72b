// Chapter 3. What the gradient checker found, in words: the first wrong coordinates, and a ratio they share.
//
// A ratio that is the same everywhere tells most about a mistake: 0.5 means a forgotten factor of two.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "autograd/check/gradcheck.h"

namespace orrery {
namespace {

double ratio(const GradcheckFailure& failure) { return failure.analytic / failure.numeric; }

// With four decimals, and near 1 with as many as show the difference: 1.000001, not 1.0000.
std::string in_digits(double ratio) {
  const double difference = std::fabs(ratio - 1);
  int decimals = 4;
  if (difference > 0 && difference < 1e-3)
    decimals = std::min(12, static_cast<int>(std::ceil(-std::log10(difference) - 1e-6)) + 1);
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << ratio + 0.0;
  std::string digits = text.str();
  for (; decimals > 4 && digits.back() == '0'; --decimals) digits.pop_back();
  return digits;
}

// "; ratio 0.3333 everywhere" if all failures have the same ratio, as after a forgotten factor; else "".
std::string shared_ratio(const std::vector<GradcheckFailure>& failures) {
  if (failures.size() < 2) return "";
  const double first = ratio(failures[0]);
  const double tolerance = std::min(1e-3 * std::max(1e-3, std::fabs(first)), 0.1 * std::fabs(first - 1));
  const bool shared = std::all_of(failures.begin(), failures.end(), [&](const GradcheckFailure& failure) {
    return std::fabs(ratio(failure) - first) <= tolerance;
  });
  return shared ? "; ratio " + in_digits(first) + " everywhere" : "";
}

// As short as possible: 0.5, 1.0000012.
std::string in_short(double ratio) {
  if (std::fabs(ratio - 1) < 1e-3) return in_digits(ratio);
  std::ostringstream text;
  text << std::setprecision(5) << ratio + 0.0;
  return text.str();
}

}  // namespace

std::string GradcheckReport::describe() const {
  constexpr size_t shown = 5;
  std::ostringstream text;
  for (const GradcheckProblem& problem : problems) text << problem.text << '\n';
  if (!failures.empty()) {
    text << failures.size() << " of " << coordinates << " coordinates are wrong" << shared_ratio(failures) << '\n';
  }
  for (size_t i = 0; i < std::min(shown, failures.size()); ++i) {  // -0 + 0.0 is 0
    text << "  " << failures[i].where << ": analytic " << std::setprecision(10) << failures[i].analytic + 0.0
         << ", numeric " << failures[i].numeric + 0.0 << ", ratio " << in_short(ratio(failures[i])) << '\n';
  }
  if (failures.size() > shown) text << "  and " << failures.size() - shown << " more\n";
  std::string result = text.str();
  if (!result.empty()) result.pop_back();
  return result;
}

std::string_view name_of(GradientCheck check) {
  switch (check) {
    case GradientCheck::none: return "";
    case GradientCheck::coordinate: return "coordinate";
    case GradientCheck::direction: return "direction";
    case GradientCheck::missing_gradient: return "missing gradient";
    case GradientCheck::shape: return "shape";
    case GradientCheck::error: return "error";
    case GradientCheck::vacuous: return "vacuous";
    case GradientCheck::declared_zero: return "declared zero";
    case GradientCheck::unlisted_leaf: return "unlisted leaf";
    case GradientCheck::kinks: return "kinks";
    case GradientCheck::repeatable: return "repeatable";
    case GradientCheck::finite: return "finite";
  }
  return "";
}

GradientCheck GradcheckReport::failed_check() const {
  if (!problems.empty()) return problems[0].check;
  if (failures.empty()) return GradientCheck::none;
  const bool single = std::any_of(failures.begin(), failures.end(), [](const auto& f) { return f.index >= 0; });
  return single ? GradientCheck::coordinate : GradientCheck::direction;
}

std::ostream& operator<<(std::ostream& out, const GradcheckReport& report) {
  out << (report.ok ? "ok: " : "FAILED: ") << report.inputs << (report.inputs == 1 ? " input, " : " inputs, ")
      << report.coordinates << " coordinates, " << report.skipped << " skipped at kinks";
  if (!report.worst_at.empty()) out << ", worst error " << report.worst_error << " at " << report.worst_at;
  for (const DeclaredZero& zero : report.zeros) out << "\n  zero: " << zero.name << " (" << zero.reason << ')';
  if (!report.ok) out << '\n' << report.message;
  return out;
}

}  // namespace orrery
