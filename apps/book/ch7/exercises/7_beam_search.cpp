// Chapter 7. Exercise 7.7: beam search.
//
// next(tokens) gives the log-probability of each token after `tokens`, of which the first is chosen with next({}). A
// sentence's log-probability is the sum over its tokens. Greedy decoding keeps one beginning; beam search keeps the
// `width` likeliest ones.
//
// At each length: extend every unfinished hypothesis of the beam by every token, and keep the `width` likeliest of all
// extended ones. Of these, the ones that end with eos or have max_len tokens are finished: they are set aside and never
// extended again. Go on until nothing unfinished is left. Of all finished hypotheses return the one with the largest
// log_probability / n^alpha, where n counts its tokens: alpha is the length penalty, and with 0 the likeliest wins.
//
// (The paper, section 6.1, used a beam of 4, and alpha = 0.6 with ((5 + n) / 6)^alpha.)
// Grade it:  apps/run exercise 7.7
#include <algorithm>
#include <cmath>
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

std::vector<i32> my_beam_search(const NextToken& next, i64 width, i32 eos, i64 max_len, double alpha) {
  std::vector<Hypothesis> beam{{}};
  return beam[0].tokens;  // YOUR CODE: the empty beginning, which nobody extends
}
