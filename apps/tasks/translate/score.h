// Chapter 9. Scores of translations: BLEU as multi-bleu.perl and as sacreBLEU count it, and chrF.
//
// BLEU ("BLEU: a Method for Automatic Evaluation of Machine Translation", Papineni et al. 2002) asks how many of the
// translation's n-grams, runs of n words, stand in a reference, a translation by a person. With the counts of all lines
// added up:
//   p_n  = matches_n / total_n            an n-gram matches at most as often as it stands in one reference of its line
//   BP   = min(1, exp(1 - r / c))         brevity penalty: c words in the translation, r in the references; of several
//                                         references of a line, the one closest in length counts, the shorter of equals
//   BLEU = 100 BP (p_1 p_2 p_3 p_4)^(1/4)
// multi-bleu.perl computes this from the words as they stand, so its number depends on who split the text into words.
// sacreBLEU ("A Call for Clarity in Reporting BLEU Scores", Post 2018) splits the text itself. If no n-gram of some
// order matches, BLEU would be 0; sacreBLEU takes 1 / 2^k match instead for the k-th such order. words.h says what the
// words are.
//
// chrF ("chrF: character n-gram F-score for automatic MT evaluation", Popović 2015) compares n-grams of characters, up
// to six, without whitespace. With precision P and recall R, each averaged over the orders that both texts have:
//   chrF = 100 (1 + beta^2) P R / (beta^2 P + R)      beta = 2: recall counts more; the name is then chrF2
// Of several references, each line counts that with the highest score.
//
// The counts of a corpus are the sums over its lines.
//
// Is one system better than another, or was it the choice of test sentences? Paired bootstrap resampling.
//
// "Statistical Significance Tests for Machine Translation Evaluation" (Koehn 2004): draw as many lines as the test set
// has, each from all of its lines, so that some come twice and some not at all. Score both systems on this sample.
// Repeat this a thousand times. The share of the samples in which a system scores higher says how sure its lead is.
//
// The p-value is computed as in sacreBLEU: how likely would a difference at least as large be, if both were equally
// good? Let d_s be |score of the system - score of the baseline| on sample s of n, and d the same on the whole test
// set:
//   p = (1 + how many d_s - mean(d_s) exceed d) / (1 + n)
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace orrery::translate {

/// The lines of a file.
using Sentences = std::vector<std::string>;

/// Whose BLEU: which words count, and whether an order without matches makes it 0.
enum class BleuKind { multi_bleu, sacrebleu };

inline constexpr size_t most_words = 4, most_characters = 6;  ///< of an n-gram in BLEU and in chrF

/// What BLEU counts in one line, or the sums over several. Element n - 1 of an array belongs to the n-grams of order n.
struct BleuCounts {
  i64 length = 0, reference_length = 0;
  std::array<i64, most_words> matches{}, total{};

  BleuCounts& operator+=(const BleuCounts& other);
};

/// The counts of every line. `references` are whole corpora: references[1][7] is the second reference of line 8.
/// Errors: no reference; a reference with another number of lines; text that is not UTF-8.
std::vector<BleuCounts> bleu_counts(BleuKind kind, const Sentences& translation,
                                    const std::vector<Sentences>& references, bool lowercase = false);

struct Bleu {
  double score = 0;                             ///< from 0 to 100
  std::array<double, most_words> precisions{};  ///< p_1 to p_4 in percent; all 0 if no word matches
  double brevity_penalty = 1;
  i64 length = 0, reference_length = 0;

  /// c / r; 0 if the references are empty.
  double ratio() const;
};
/// BLEU from the sum of the counts of all lines.
Bleu bleu(BleuKind kind, const BleuCounts& sums);

/// What chrF counts in one line, or the sums over several: n-grams of the translation, of the reference, and of both.
struct ChrfCounts {
  std::array<i64, most_characters> translation{}, reference{}, matches{};

  ChrfCounts& operator+=(const ChrfCounts& other);
};

/// The counts of every line, as above.
std::vector<ChrfCounts> chrf_counts(const Sentences& translation, const std::vector<Sentences>& references,
                                    bool lowercase = false);
/// chrF2 from the sum of the counts of all lines, from 0 to 100.
double chrf(const ChrfCounts& sums);

/// The sum of the counts of all lines.
template <class Counts> Counts sum(const std::vector<Counts>& lines) {
  Counts result;
  for (const Counts& line : lines) result += line;
  return result;
}
/// The sum over the lines with these numbers, counted from 0. A line may come more than once.
template <class Counts> Counts sum(const std::vector<Counts>& lines, std::span<const i64> numbers) {
  Counts result;
  for (const i64 number : numbers) result += lines[static_cast<size_t>(number)];
  return result;
}

/// The score of the text that consists of the lines with these numbers, counted from 0.
using ScoreOfLines = std::function<double(std::span<const i64> lines)>;

/// Two systems, scored by the same metric.
struct Paired {
  ScoreOfLines system, baseline;
};

/// Mean of a system's scores on the samples; 95 % of them lie within an interval that is twice `half_width` wide.
struct Spread {
  double mean = 0, half_width = 0;
};

struct Comparison {
  double difference = 0;  ///< on the whole test set: the system's score minus the baseline's
  Spread system, baseline;
  double higher = 0;  ///< share of the samples in which the system scores higher, from 0 to 1
  /// As above; 1 if the systems score the same on every sample, where sacreBLEU says 1 / (1 + n).
  double p_value = 1;
};

/// Fills `sample` with line numbers.
using DrawSample = std::function<void(std::span<i64> sample)>;

/// Compares two systems under each metric, on the same `samples` samples for all. Errors: no lines; no samples.
std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples,
                                         const DrawSample& draw);
/// The same with samples that are drawn at random.
std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples, u64 seed);

}  // namespace orrery::translate
