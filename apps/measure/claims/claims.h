// Chapter 9. Claims: what papers and tutorials say, each with the experiment that tests it.
//
// A claim is one function that measures, and one row of the table in table.cpp. The function returns its measurements
// as lines of text, and a verdict that follows from them. A claim that turns out wrong is reported as wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace orrery::claims {

enum class Verdict { holds, partly, does_not_hold };
/// "holds", "partly", "does not hold"
std::string name_of(Verdict verdict);
/// The verdict on a claim with one condition, or with two: partly, if only one of them is met.
Verdict verdict_of(bool met);
Verdict verdict_of(bool first_met, bool second_met);

/// What a measurement showed.
struct Finding {
  Verdict verdict = Verdict::does_not_hold;
  std::vector<std::string> measured{};  ///< the numbers, in lines of at most 88 columns
};

/// Thrown by `Run::go_on` after Ctrl-C.
struct Stopped {};

/// The run that measurements are part of.
struct Run {
  std::function<bool()> stop_requested;
  /// Called between steps of a measurement.
  void go_on() const {
    if (stop_requested && stop_requested()) throw Stopped{};
  }
};

/// One row of the table.
struct Claim {
  std::string name;      ///< "label-smoothing"
  std::string says;      ///< the claim, in one or two sentences
  std::string source;    ///< paper and section
  std::string holds_if;  ///< which numbers decide the verdict. They leave a margin, so that another CPU's rounding does
                         ///< not change it
  Finding (*measure)(const Run& run);
};
const std::vector<Claim>& all_claims();

}  // namespace orrery::claims
