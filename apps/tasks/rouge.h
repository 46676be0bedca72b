// Chapter 9. ROUGE: how much of a summary by a person a model's summary has, as rouge_score counts it.
//
// Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries". With P the share of the model's n-grams that the
// reference has, and R the share of the reference's n-grams that the model has, each counted as often as both have it:
//   ROUGE-N = 2 P R / (P + R)     n-grams of N words
//   ROUGE-L                       the same of the longest common subsequence of the words
// The numbers that papers compare are those of Google's rouge_score with use_stemmer. Its words are runs of a to z and
// 0 to 9, after all letters became small, and it compares the stems of those with more than three characters: Porter
// 1980, "An algorithm for suffix stripping", with the extensions of NLTK, which rouge_score uses.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The stem of a word of small letters and digits: "relational" becomes "relat".
std::string stem_of(std::string word);

/// The words of a text that are compared, as stems. Error: text that is not UTF-8.
std::vector<std::string> rouge_words(std::string_view text);

/// ROUGE-1, ROUGE-2 and ROUGE-L, from 0 to 1. A text without words has 0. Error: text that is not UTF-8.
std::array<double, 3> rouge(std::string_view reference, std::string_view summary);

}  // namespace orrery
