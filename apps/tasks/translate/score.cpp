// Chapter 9. Counting n-grams that match, and the formulas of BLEU and chrF.
//
// The formulas are evaluated in the order in which sacreBLEU does it, so that the results agree to the last digits.
//
// Paired bootstrap: scores on samples of the lines, their spread, and the p-value.
#include "apps/tasks/translate/score.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "apps/data/unicode.h"
#include "apps/data/words.h"
#include "core/error.h"
#include "core/random.h"

namespace orrery::translate {
namespace {

using NgramCounts = std::unordered_map<std::string_view, i64>;

// A text and its units, words or characters. Every n-gram is a part of the text, and two n-grams are equal if their
// parts are, since words are separated by exactly one space and characters by nothing.
class Units {
 public:
  // Words that are separated by single spaces.
  static Units words(std::string text) {
    Units result(std::move(text));
    for (size_t begin = 0; begin < result.text_.size();) {
      const size_t end = std::min(result.text_.find(' ', begin), result.text_.size());
      result.bounds_.push_back({begin, end});
      begin = end + 1;
    }
    return result;
  }
  static Units characters(std::string text) {
    Units result(std::move(text));
    for_each_character(result.text_, [&](size_t, size_t at, size_t bytes) {
      result.bounds_.push_back({at, at + bytes});
    });
    return result;
  }

  size_t count() const { return bounds_.size(); }
  size_t ngrams(size_t n) const { return count() < n ? 0 : count() - n + 1; }
  // How often each n-gram of n units occurs. The keys point into this object.
  NgramCounts counts(size_t n) const {
    NgramCounts result;
    for (size_t i = 0; i < ngrams(n); ++i) {
      const size_t begin = bounds_[i].begin, end = bounds_[i + n - 1].end;
      ++result[std::string_view(text_).substr(begin, end - begin)];
    }
    return result;
  }

 private:
  struct Bounds {
    size_t begin, end;
  };

  explicit Units(std::string text) : text_(std::move(text)) {}

  std::string text_;
  std::vector<Bounds> bounds_;
};

// How many n-grams of `translation` are also in `reference`, each at most as often as it is there.
i64 matches_of(const NgramCounts& translation, const NgramCounts& reference) {
  i64 matches = 0;
  for (const auto& [ngram, count] : translation)
    if (const auto found = reference.find(ngram); found != reference.end()) matches += std::min(count, found->second);
  return matches;
}

// The length of the reference that is closest to that of the translation; of two equally close ones, the shorter. If
// even this one is 9999 words longer or shorter, multi-bleu.perl takes 9999 for its length; we do not.
i64 closest_length(const Units& translation, const std::vector<Units>& references) {
  const auto length = static_cast<i64>(translation.count());
  i64 closest = static_cast<i64>(references.front().count());
  for (const Units& reference : references) {
    const auto other = static_cast<i64>(reference.count());
    const i64 difference = std::abs(other - length), least = std::abs(closest - length);
    if (difference < least || (difference == least && other < closest)) closest = other;
  }
  return closest;
}

BleuCounts bleu_counts_of_line(const Units& translation, const std::vector<Units>& references) {
  BleuCounts result;
  result.length = static_cast<i64>(translation.count());
  result.reference_length = closest_length(translation, references);
  for (size_t n = 1; n <= most_words; ++n) {
    NgramCounts most;  // for each n-gram, how often it stands in the reference that has it most often
    for (const Units& reference : references)
      for (const auto& [ngram, count] : reference.counts(n)) most[ngram] = std::max(most[ngram], count);
    result.total[n - 1] = static_cast<i64>(translation.ngrams(n));
    result.matches[n - 1] = matches_of(translation.counts(n), most);
  }
  return result;
}

// n-grams of the translation do not count in an order of which the reference has none.
ChrfCounts chrf_counts_of_line(const Units& translation, const Units& reference) {
  ChrfCounts result;
  for (size_t n = 1; n <= most_characters; ++n) {
    result.reference[n - 1] = static_cast<i64>(reference.ngrams(n));
    result.translation[n - 1] = reference.ngrams(n) > 0 ? static_cast<i64>(translation.ngrams(n)) : 0;
    result.matches[n - 1] = matches_of(translation.counts(n), reference.counts(n));
  }
  return result;
}

ChrfCounts best_chrf_counts(const Units& translation, const std::vector<Units>& references) {
  ChrfCounts best;
  double highest = -1;
  for (const Units& reference : references) {
    const ChrfCounts counts = chrf_counts_of_line(translation, reference);
    if (const double score = chrf(counts); score > highest) {
      highest = score;
      best = counts;
    }
  }
  return best;
}

// Calls count(translation, references) for every line, each text made into its units by `units_of`.
template <class Counts, class UnitsOf, class Count>
std::vector<Counts> counts_of_lines(const Sentences& translation, const std::vector<Sentences>& references,
                                    const UnitsOf& units_of, const Count& count) {
  check(!references.empty(), "score", "needs a reference");
  for (const Sentences& reference : references)
    check(reference.size() == translation.size(), "score", "a translation of ", translation.size(),
          " lines and a reference of ", reference.size());
  std::vector<Counts> result;
  for (size_t line = 0; line < translation.size(); ++line) {
    std::vector<Units> of_references;
    for (const Sentences& reference : references) of_references.push_back(units_of(reference[line]));
    result.push_back(count(units_of(translation[line]), of_references));
  }
  return result;
}

template <size_t n> void add_to(std::array<i64, n>& sums, const std::array<i64, n>& others) {
  for (size_t i = 0; i < n; ++i) sums[i] += others[i];
}

double brevity_penalty_of(i64 length, i64 reference_length) {
  if (length >= reference_length) return 1;
  return length == 0 ? 0 : std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(length));
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  length += other.length;
  reference_length += other.reference_length;
  add_to(matches, other.matches);
  add_to(total, other.total);
  return *this;
}

std::vector<BleuCounts> bleu_counts(BleuKind kind, const Sentences& translation,
                                    const std::vector<Sentences>& references, bool lowercase) {
  const auto words = [&](const std::string& line) {
    if (kind == BleuKind::multi_bleu) return Units::words(words_of(lowercase ? ascii_lowercase(line) : line));
    return Units::words(words_13a(lowercase ? orrery::lowercase(line) : line));
  };
  return counts_of_lines<BleuCounts>(translation, references, words, bleu_counts_of_line);
}

double Bleu::ratio() const {
  return reference_length == 0 ? 0 : static_cast<double>(length) / static_cast<double>(reference_length);
}

Bleu bleu(BleuKind kind, const BleuCounts& sums) {
  Bleu result;
  result.length = sums.length;
  result.reference_length = sums.reference_length;
  result.brevity_penalty = brevity_penalty_of(sums.length, sums.reference_length);
  if (sums.matches[0] == 0) return result;  // then no longer n-gram matches either
  double instead = 1, logarithms = 0;
  for (size_t i = 0; i < most_words; ++i) {
    if (sums.total[i] == 0) return result;  // every line is shorter than the n-gram
    auto matches = static_cast<double>(sums.matches[i]);
    if (sums.matches[i] == 0 && kind == BleuKind::sacrebleu) matches = instead /= 2;
    result.precisions[i] = 100 * matches / static_cast<double>(sums.total[i]);
    logarithms += std::log(result.precisions[i]);  // of 0: minus infinity, and the score is 0
  }
  result.score = result.brevity_penalty * std::exp(logarithms / most_words);
  return result;
}

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  add_to(translation, other.translation);
  add_to(reference, other.reference);
  add_to(matches, other.matches);
  return *this;
}

std::vector<ChrfCounts> chrf_counts(const Sentences& translation, const std::vector<Sentences>& references,
                                    bool lowercase) {
  const auto characters = [&](const std::string& line) {
    return Units::characters(without_whitespace(lowercase ? orrery::lowercase(line) : line));
  };
  return counts_of_lines<ChrfCounts>(translation, references, characters, best_chrf_counts);
}

double chrf(const ChrfCounts& sums) {
  constexpr double beta_squared = 2 * 2;
  double precision = 0, recall = 0;
  int orders = 0;
  for (size_t i = 0; i < most_characters; ++i) {
    if (sums.translation[i] == 0 || sums.reference[i] == 0) continue;
    precision += static_cast<double>(sums.matches[i]) / static_cast<double>(sums.translation[i]);
    recall += static_cast<double>(sums.matches[i]) / static_cast<double>(sums.reference[i]);
    ++orders;
  }
  if (orders == 0 || precision == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * ((1 + beta_squared) * precision * recall / (beta_squared * precision + recall));
}

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// 95 % of the scores lie within the interval: one 40th of the sorted ones is left out at each end.
Spread spread_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t left_out = scores.size() / 40;
  return {mean_of(scores), (scores[scores.size() - left_out - 1] - scores[left_out]) / 2};
}

Comparison comparison_of(double difference, const std::vector<double>& system, const std::vector<double>& baseline) {
  Comparison result{.difference = difference,
                    .system = spread_of(system),
                    .baseline = spread_of(baseline),
                    .higher = 0,
                    .p_value = 1};
  const auto samples = static_cast<double>(system.size());
  std::vector<double> differences;
  i64 higher = 0;
  for (size_t s = 0; s < system.size(); ++s) {
    differences.push_back(std::abs(system[s] - baseline[s]));
    higher += system[s] > baseline[s];
  }
  result.higher = static_cast<double>(higher) / samples;
  if (std::all_of(differences.begin(), differences.end(), [](double d) { return d == 0; })) return result;
  const double mean = mean_of(differences), observed = std::abs(difference);
  const auto exceeding =
      std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean > observed; });
  result.p_value = (static_cast<double>(exceeding) + 1) / (samples + 1);
  return result;
}

}  // namespace

std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples,
                                         const DrawSample& draw) {
  check(lines > 0 && samples > 0, "bootstrap", "needs lines and samples, not ", lines, " and ", samples);
  std::vector<i64> sample(static_cast<size_t>(lines));
  std::iota(sample.begin(), sample.end(), i64{0});
  std::vector<double> differences;
  for (const Paired& metric : metrics) differences.push_back(metric.system(sample) - metric.baseline(sample));
  std::vector<std::vector<double>> of_system(metrics.size()), of_baseline(metrics.size());
  for (i64 s = 0; s < samples; ++s) {
    draw(sample);
    for (size_t m = 0; m < metrics.size(); ++m) {
      of_system[m].push_back(metrics[m].system(sample));
      of_baseline[m].push_back(metrics[m].baseline(sample));
    }
  }
  std::vector<Comparison> result;
  for (size_t m = 0; m < metrics.size(); ++m)
    result.push_back(comparison_of(differences[m], of_system[m], of_baseline[m]));
  return result;
}

std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples, u64 seed) {
  Rng rng(seed);
  return paired_bootstrap(metrics, lines, samples, [&](std::span<i64> sample) {
    for (i64& line : sample) line = rng.integer(0, lines);
  });
}

}  // namespace orrery::translate
