// Chapter 7. A wrong answer to exercise 7.6: the beam has one place more than its width.
// Expect: FAILED  a beam of one
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using NextToken = std::function<std::vector<double>(const std::vector<i32>& tokens)>;

struct Hypothesis {
  std::vector<i32> tokens;
  double log_probability = 0;
};

inline bool likelier(const Hypothesis& a, const Hypothesis& b) { return a.log_probability > b.log_probability; }

std::vector<i32> my_beam_search(const NextToken& next, i64 width, i32 eos, i64 max_len) {
  std::vector<Hypothesis> running(1), finished;
  for (i64 length = 1; length <= max_len && !running.empty(); ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& hypothesis : running) {
      const std::vector<double> scores = next(hypothesis.tokens);
      for (size_t token = 0; token < scores.size(); ++token) {
        Hypothesis extended = hypothesis;
        extended.tokens.push_back(static_cast<i32>(token));
        extended.log_probability += scores[token];
        longer.push_back(std::move(extended));
      }
    }
    std::stable_sort(longer.begin(), longer.end(), likelier);
    if (longer.size() > static_cast<size_t>(width)) longer.resize(static_cast<size_t>(width) + 1);
    running.clear();
    for (Hypothesis& hypothesis : longer) {
      const bool ends = hypothesis.tokens.back() == eos || length == max_len;
      (ends ? finished : running).push_back(std::move(hypothesis));
    }
  }
  return std::min_element(finished.begin(), finished.end(), likelier)->tokens;
}
