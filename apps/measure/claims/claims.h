// Chapter 9. Claims: what papers and tutorials say, each with the experiment that tests it.
//
// A claim is one function that measures, and one row of the table in table.cpp. The function returns its measurements
// as lines of text, and a verdict that follows from them. A claim that turns out wrong is reported as wrong.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "apps/program/terminal.h"
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

// The measurements, by the file that makes them.

// positions.cpp: order, and what lies beyond the trained length.
Finding order_needs_positions(const Run& run);
Finding learned_equals_sinusoidal(const Run& run);
Finding sinusoidal_extrapolates(const Run& run);
Finding learned_do_not_extrapolate(const Run& run);

// recipes.cpp: operations, counted; what the paper's training is made of, and mistakes in it.
Finding quadratic_operations(const Run& run);
Finding label_smoothing(const Run& run);
Finding gradients_at_the_start(const Run& run);
Finding flipped_mask(const Run& run);

/// A claim and what its measurement showed.
struct Measured {
  Claim claim;
  Finding finding;
};

/// The claims by name, with what they say; nothing is measured.
void print_names(std::ostream& out, const std::vector<Claim>& claims);
/// Claim, source, measurement, what decides the verdict, and the verdict.
void print_measured(std::ostream& out, const Measured& measured, const Terminal& terminal);
/// "14 claims: 11 hold, 2 do not, 1 partly"
std::string summary_of(const std::vector<Measured>& all);
/// All of it as one JSON object. `chosen` is how many claims were asked for; if there are fewer findings, the object
/// says that it is not complete.
std::string claims_as_json(const std::vector<Measured>& all, size_t chosen);

}  // namespace orrery::claims
