// Chapter 9. Porter's rules, in his order, and the counts of ROUGE.
#include "apps/tasks/rouge.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "apps/data/unicode.h"
#include "core/dtype.h"

namespace orrery {
namespace {

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != letters.npos; }

// "ccvvc" for "treat". A y is a consonant at the beginning and after a vowel.
std::string kinds_of(std::string_view word) {
  std::string kinds;
  for (const char letter : word)
    kinds += is_one_of(letter, "aeiou") || (letter == 'y' && kinds.ends_with('c')) ? 'v' : 'c';
  return kinds;
}

// Porter's m: how often consonants follow vowels.
int porter_m(std::string_view stem) {
  const std::string kinds = kinds_of(stem);
  int count = 0;
  for (size_t at = 0; (at = kinds.find("vc", at)) != kinds.npos; ++at) ++count;
  return count;
}

// Porter's *o, and as NLTK has it also two letters.
bool is_short(std::string_view stem) {
  const std::string kinds = kinds_of(stem);
  return kinds == "vc" || (kinds.ends_with("cvc") && !is_one_of(stem.back(), "wxy"));
}

std::string without(const std::string& word, size_t letters) { return word.substr(0, word.size() - letters); }

using Rule = std::pair<std::string_view, std::string_view>;  // a suffix, and what replaces it

// By the first rule whose suffix the word has, if what stands before the suffix has a measure of at least `least`.
std::string by_rules(const std::string& word, std::span<const Rule> rules, int least) {
  for (const auto& [suffix, other] : rules) {
    if (!word.ends_with(suffix)) continue;
    const std::string stem = without(word, suffix.size());
    const bool fits = suffix != "ion" || stem.ends_with('s') || stem.ends_with('t');
    const int m = porter_m(suffix == "logi" ? stem + 'l' : stem);  // NLTK: so that geology has the rule
    return fits && m >= least ? stem + std::string(other) : word;
  }
  return word;
}

// Plurals.
std::string step_1a(const std::string& word) {
  constexpr Rule rules[]{{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}};
  return word.size() == 4 && word.ends_with("ies") ? without(word, 1) : by_rules(word, rules, 0);
}

// Past tenses and participles.
std::string step_1b(const std::string& word) {
  if (word.ends_with("ied")) return without(word, word.size() == 4 ? 1 : 2);
  if (word.ends_with("eed")) return porter_m(without(word, 3)) > 0 ? without(word, 1) : word;
  const size_t suffix = word.ends_with("ed") ? 2 : 3;
  if (!word.ends_with("ed") && !word.ends_with("ing")) return word;
  const std::string stem = without(word, suffix), kinds = kinds_of(stem);
  if (kinds.find('v') == kinds.npos) return word;
  if (stem.ends_with("at") || stem.ends_with("bl") || stem.ends_with("iz")) return stem + 'e';
  if (stem.size() > 1 && stem.back() == stem[stem.size() - 2] && kinds.back() == 'c')
    return is_one_of(stem.back(), "lsz") ? stem : without(stem, 1);
  return porter_m(stem) == 1 && is_short(stem) ? stem + 'e' : stem;
}

std::string step_1c(const std::string& word) {
  const std::string kinds = kinds_of(without(word, 1));
  return word.ends_with('y') && kinds.size() > 1 && kinds.back() == 'c' ? without(word, 1) + 'i' : word;
}

std::string step_2(const std::string& word) {
  constexpr Rule rules[]{{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
                         {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
                         {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
                         {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
                         {"fulli", "ful"},   {"logi", "log"}};
  if (word.ends_with("alli") && porter_m(without(word, 4)) > 0) return step_2(without(word, 2));
  return by_rules(word, rules, 1);
}

std::string step_3(const std::string& word) {
  constexpr Rule rules[]{{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                         {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
  return by_rules(word, rules, 1);
}

std::string step_4(const std::string& word) {
  constexpr Rule rules[]{{"al", ""},  {"ance", ""},  {"ence", ""}, {"er", ""},  {"ic", ""},  {"able", ""}, {"ible", ""},
                         {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""},   {"ism", ""},
                         {"ate", ""}, {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};
  return by_rules(word, rules, 2);
}

std::string step_5a(const std::string& word) {
  const std::string stem = without(word, 1);
  const int m = porter_m(stem);
  return word.ends_with('e') && (m > 1 || (m == 1 && !is_short(stem))) ? stem : word;
}

std::string step_5b(const std::string& word) {
  return word.ends_with("ll") && porter_m(without(word, 1)) > 1 ? without(word, 1) : word;
}

// How many n-grams both have.
double common(const std::vector<std::string>& a, const std::vector<std::string>& b, size_t n) {
  std::map<std::vector<std::string>, std::pair<i64, i64>> counts;
  const auto count = [&](const std::vector<std::string>& words, i64 std::pair<i64, i64>::*side) {
    for (auto at = words.begin(); words.end() - at >= static_cast<std::ptrdiff_t>(n); ++at)
      ++(counts[{at, at + static_cast<std::ptrdiff_t>(n)}].*side);
  };
  count(a, &std::pair<i64, i64>::first);
  count(b, &std::pair<i64, i64>::second);
  i64 both = 0;
  for (const auto& [ngram, each] : counts) both += std::min(each.first, each.second);
  return static_cast<double>(both);
}

double longest_common_subsequence(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<i64> row(b.size() + 1);  // of the words of a so far, with each beginning of b
  for (const std::string& word : a) {
    i64 diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], word == b[j] ? diagonal + 1 : std::max(row[j], row[j + 1]));
  }
  return static_cast<double>(row.back());
}

double f1(double both, double of_reference, double of_summary) {
  const double P = both / std::max(of_summary, 1.0), R = both / std::max(of_reference, 1.0);
  return both > 0 ? 2 * P * R / (P + R) : 0;
}

}  // namespace

std::string stem_of(std::string word) {
  static const std::map<std::string_view, std::string> irregular{
      {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},       {"tying", "tie"},
      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},   {"outings", "outing"},
      {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"}, {"howe", "howe"},
      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}, {"sky", "sky"}};
  if (const auto found = irregular.find(word); found != irregular.end()) return found->second;
  if (word.size() <= 2) return word;
  for (const auto step : {step_1a, step_1b, step_1c, step_2, step_3, step_4, step_5a, step_5b}) word = step(word);
  return word;
}

std::vector<std::string> rouge_words(std::string_view text) {
  constexpr size_t longest_unchanged = 3;
  std::vector<std::string> words;
  std::string word;
  for (const char letter : lowercase(text) + ' ') {
    if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(word.size() > longest_unchanged ? stem_of(word) : word);
      word.clear();
    }
  }
  return words;
}

std::array<double, 3> rouge(std::string_view reference, std::string_view summary) {
  const std::vector<std::string> right = rouge_words(reference), said = rouge_words(summary);
  const double R = static_cast<double>(right.size()), S = static_cast<double>(said.size());
  return {f1(common(right, said, 1), R, S), f1(common(right, said, 2), R - 1, S - 1),
          f1(longest_common_subsequence(right, said), R, S)};
}

}  // namespace orrery
