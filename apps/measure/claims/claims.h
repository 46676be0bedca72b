// Chapter 9. Claims: what papers and tutorials say, each with the experiment that tests it.
//
// A claim is one function that measures, and one row of the table in measurements.cpp. The function returns its
// measurements as lines of text, and a verdict that follows from them. A claim that turns out wrong is reported as
// wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor_ops.h"

namespace orrery::claims {

enum class Verdict { holds, partly, does_not_hold };
/// "holds", "partly", "does not hold"
std::string name_of(Verdict verdict);
/// The verdict on a claim with two conditions: partly, if only one of them is met.
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

/// A claim and what its measurement showed.
struct Measured {
  Claim claim;
  Finding finding;
};
/// "6 claims: 3 hold, 1 does not, 2 partly"
std::string summary_of(const std::vector<Measured>& all);
/// All of it as one JSON object. `chosen` is how many claims were asked for; if there are fewer findings, the object
/// says that it is not complete.
std::string claims_as_json(const std::vector<Measured>& all, size_t chosen);

/// Tokens [B, T], and what a model has to answer at each position; `ignored` where nothing is asked.
struct Lesson {
  Tensor ids, labels;
};
inline constexpr i32 ignored = -100;
/// Of 8 letters.
inline constexpr i64 letters = 8;
/// `count` sequences of uniform letters; the answer at each position is the letter before it.
Lesson earlier_letter(i64 count, i64 length, Rng& rng);
/// Sequences of a language: each letter repeats the one two before it with this probability, else it is uniform. The
/// answer at each position is the next letter.
Lesson noisy_language(double repeats, i64 count, i64 length, Rng& rng);
/// The entropy of a letter after the first two, in nats: no model of this language has a smaller mean loss.
double entropy_of_noisy_language(double repeats);

}  // namespace orrery::claims
