// Chapter 3. Tests of the checker's words: the shared ratio, the list cut short, and which check found the mistake.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "autograd/check/gradcheck.h"

using namespace orrery;

namespace {

GradcheckReport wrong_by(double factor, i64 count) {
  GradcheckReport report;
  report.coordinates = 20;
  for (i64 i = 0; i < count; ++i) {
    const double numeric = 1.0 + static_cast<double>(i);
    report.failures.push_back({"x", i, "x[" + std::to_string(i) + "]", factor * numeric, numeric});
  }
  return report;
}

}  // namespace

TEST_CASE("a ratio that all share is said once, and five coordinates are enough") {
  CHECK(wrong_by(0.5, 7).describe() ==
        "7 of 20 coordinates are wrong; ratio 0.5000 everywhere\n"
        "  x[0]: analytic 0.5, numeric 1, ratio 0.5\n  x[1]: analytic 1, numeric 2, ratio 0.5\n"
        "  x[2]: analytic 1.5, numeric 3, ratio 0.5\n  x[3]: analytic 2, numeric 4, ratio 0.5\n"
        "  x[4]: analytic 2.5, numeric 5, ratio 0.5\n  and 2 more");
  GradcheckReport mixed = wrong_by(0.5, 2);
  mixed.failures[1].analytic = 7;
  CHECK(mixed.describe().find("everywhere") == std::string::npos);
  CHECK(GradcheckReport().describe() == "");
  CHECK(wrong_by(-0.0, 1).describe().ends_with("analytic 0, numeric 1, ratio 0"));
}

TEST_CASE("a ratio near 1 is given with the digits that show the fault") {
  CHECK(wrong_by(1.000001, 7).describe().find("; ratio 1.000001 everywhere\n") != std::string::npos);
  CHECK(wrong_by(0.99999, 7).describe().find("; ratio 0.99999 everywhere\n") != std::string::npos);
  CHECK(wrong_by(1.000001, 1).describe().ends_with("ratio 1.000001"));
  CHECK(wrong_by(2, 7).describe().find("; ratio 2.0000 everywhere\n") != std::string::npos);
  GradcheckReport other = wrong_by(1.000001, 2);
  other.failures[1].analytic = 0.9999 * other.failures[1].numeric;
  CHECK(other.describe().find("everywhere") == std::string::npos);
}

TEST_CASE("a report tells which check found the mistake") {
  CHECK(GradcheckReport().failed_check() == GradientCheck::none);
  GradcheckReport report = wrong_by(2, 1);
  CHECK(report.failed_check() == GradientCheck::coordinate);
  report.failures[0].index = -1;
  CHECK(report.failed_check() == GradientCheck::direction);
  report.problems.push_back({GradientCheck::vacuous, "x: nothing was checked"});
  CHECK(report.failed_check() == GradientCheck::vacuous);
  CHECK(report.describe().starts_with("x: nothing was checked\n"));
}

TEST_CASE("every check has a name of its own") {
  std::set<std::string_view> names;
  constexpr int count = static_cast<int>(GradientCheck::finite) + 1;
  for (int i = 0; i < count; ++i) names.insert(name_of(static_cast<GradientCheck>(i)));
  CHECK(names.size() == count);
  CHECK(names.contains("missing gradient"));
}

TEST_CASE("printed: what was checked, then what is zero, then what is wrong") {
  GradcheckReport report;
  report.ok = true;
  report.inputs = 1;
  report.coordinates = 3;
  report.zeros = {{"bias", "shifts every score alike"}};
  std::ostringstream text;
  text << report;
  CHECK(text.str() == "ok: 1 input, 3 coordinates, 0 skipped at kinks\n  zero: bias (shifts every score alike)");
}
