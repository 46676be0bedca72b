// Chapter 7. Solution of exercise 7.6: beam search.
//
// next(tokens) gives the log-probability of each token after `tokens`, of which the first is chosen with next({}). A
// sentence's log-probability is the sum over its tokens. Greedy decoding keeps one beginning; beam search keeps the
// `width` likeliest ones.
//
// At each length: extend every unfinished hypothesis of the beam by every token, and keep the `width` likeliest of all
// extended ones. Of these, the ones that end with eos or have max_len tokens are finished: they are set aside and never
// extended again. Go on until nothing unfinished is left. Return the likeliest of all finished hypotheses.
//
// (The paper, section 6.1, used a beam of 4, and a length penalty that is left out here.)
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
    if (longer.size() > static_cast<size_t>(width)) longer.resize(static_cast<size_t>(width));
    running.clear();
    for (Hypothesis& hypothesis : longer) {
      const bool ends = hypothesis.tokens.back() == eos || length == max_len;
      (ends ? finished : running).push_back(std::move(hypothesis));
    }
  }
  const auto best = std::min_element(finished.begin(), finished.end(), likelier);
  return best == finished.end() ? std::vector<i32>{} : best->tokens;
}
