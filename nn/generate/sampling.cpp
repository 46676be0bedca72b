// Chapter 7. Sampling: sort, cut, draw.
#include "nn/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery::nn {
namespace {

// The tokens whose logit is not -infinity, in the order of their ids. `probability` still holds the logit.
std::vector<Candidate> allowed_tokens(const Tensor& logits) {
  const i64 K = dims<1>(logits, "logits")[0];
  check(K > 0, "sample", "needs at least one logit");
  std::vector<Candidate> list;
  list.reserve(static_cast<size_t>(K));
  dispatch_floating(logits.dtype(), "sample", [&](auto t) {
    const auto* logit = logits.data<decltype(t)>();
    for (i64 k = 0; k < K; ++k) {
      const double value = static_cast<double>(logit[k]);
      check(value < std::numeric_limits<double>::infinity(), "sample", "logit ", k, " is ", value);  // NaN, too
      if (std::isfinite(value)) list.push_back({static_cast<i32>(k), value});
    }
  });
  check(!list.empty(), "sample", "no token is left: every logit is -infinity");
  return list;
}

// Scales the probabilities that are left such that they add up to 1.
void normalize(std::vector<Candidate>& list) {
  double total = 0;
  for (const Candidate& c : list) total += c.probability;
  for (Candidate& c : list) c.probability /= total;
}

}  // namespace

void check_options(const SamplingOptions& options) {
  check(options.temperature >= 0, "sample", "the temperature must be 0 or more, not ", options.temperature);
  check(options.top_k >= 0, "sample", "top_k must be 0 or more, not ", options.top_k);
  check(options.top_p > 0 && options.top_p <= 1, "sample", "top_p must be in (0, 1], not ", options.top_p);
}

std::vector<Candidate> candidates(const Tensor& logits, const SamplingOptions& options) {
  check_options(options);
  std::vector<Candidate> list = allowed_tokens(logits);
  const i64 allowed = static_cast<i64>(list.size());
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.probability > b.probability || (a.probability == b.probability && a.token < b.token);
  };
  i64 kept = allowed;
  if (options.top_k > 0) kept = std::min(allowed, options.top_k);
  if (options.temperature == 0) kept = 1;
  if (kept < allowed || options.top_p < 1) {  // sorting a large vocabulary takes longer than everything else
    std::partial_sort(list.begin(), list.begin() + kept, list.end(), likelier);
    list.resize(static_cast<size_t>(kept));
  }
  if (kept == 1) return {{list[0].token, 1.0}};
  const double largest = std::max_element(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
                           return a.probability < b.probability;
                         })->probability;
  for (Candidate& c : list) c.probability = std::exp((c.probability - largest) / options.temperature);
  normalize(list);
  if (options.top_p < 1) {  // the list is sorted: the first ones whose probabilities reach top_p stay
    double reached = 0;
    const auto last = std::find_if(list.begin(), list.end(), [&](const Candidate& c) {
      reached += c.probability;
      return reached >= options.top_p;
    });
    if (last != list.end()) list.erase(last + 1, list.end());
  }
  normalize(list);
  return list;
}

i32 sample(const Tensor& logits, const SamplingOptions& options, Rng& rng) {
  const std::vector<Candidate> list = candidates(logits, options);
  if (list.size() == 1 && options.temperature == 0) return list[0].token;
  double left = rng.uniform();
  for (const Candidate& c : list) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  return list.back().token;  // reached only because of rounding
}

}  // namespace orrery::nn
