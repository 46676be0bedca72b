// Chapter 7. Constraints: for each sequence, the scores that are discounted, and those that become -infinity.
#include "nn/generate/constraints.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery::nn {
namespace {

// A copy of `logits` in which change(row, its logits, K) changed each row.
template <class Change>
Tensor with_rows_changed(const Tensor& logits, std::string_view operation, const Change& change) {
  const auto [R, K] = dims<2>(logits, "logits");
  Tensor result = logits.clone();
  dispatch_floating(logits.dtype(), operation, [&, K = K, R = R](auto t) {
    auto* row = result.write<decltype(t)>();
    for (i64 r = 0; r < R; ++r) change(static_cast<size_t>(r), row + r * K, K);
  });
  return result;
}

// The tokens that would end an n-gram of `written` once more.
std::vector<i32> repeating(const std::vector<i32>& written, i64 n) {
  std::vector<i32> tokens;
  const i64 length = std::ssize(written);
  if (length < n) return tokens;
  const auto last = written.end() - (n - 1);  // the n - 1 tokens before the next one
  for (auto at = written.begin(); at + (n - 1) < written.end(); ++at)
    if (std::equal(last, written.end(), at)) tokens.push_back(*(at + (n - 1)));
  return tokens;
}

}  // namespace

void Constraints::check_options(std::string_view operation, std::span<const i64> limits, i32 eos) const {
  check(repetition_penalty > 0 && std::isfinite(repetition_penalty), operation,
        "the repetition penalty must be above 0 and finite, not ", repetition_penalty);
  check(no_repeat_ngram >= 0, operation, "no_repeat_ngram must be 0 or more, not ", no_repeat_ngram);
  check(prefixes.empty() || prefixes.size() == limits.size(), operation, prefixes.size(), " prefixes are given for ",
        limits.size(), " sequences");
  for (size_t i = 0; i < prefixes.size(); ++i) {
    check(std::ssize(prefixes[i]) < limits[i], operation, "a prefix of ", prefixes[i].size(),
          " tokens leaves no room in a sequence of at most ", limits[i]);
    check(std::find(prefixes[i].begin(), prefixes[i].end(), eos) == prefixes[i].end(), operation,
          "a prefix has the token that ends a sequence, ", eos);
  }
}

Tensor penalized(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints) {
  const double theta = constraints.repetition_penalty;
  if (theta == 1) return logits;
  return with_rows_changed(logits, "repetition penalty", [&](size_t r, auto* x, i64 K) {
    std::vector<bool> is_penalized(static_cast<size_t>(K), false);
    for (const i32 token : written[r].tokens) {
      if (token < 0 || token >= K || is_penalized[static_cast<size_t>(token)]) continue;
      is_penalized[static_cast<size_t>(token)] = true;
      const double score = static_cast<double>(x[token]);
      x[token] = static_cast<std::remove_reference_t<decltype(*x)>>(score > 0 ? score / theta : score * theta);
    }
  });
}

Tensor permitted(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints,
                 std::string_view operation) {
  const auto begins = [&](const WrittenSequence& row) {  // it has not all of its prefix
    return !constraints.prefixes.empty() &&
           row.tokens.size() - constraints.prompt.size() < constraints.prefixes[row.number].size();
  };
  if (constraints.no_repeat_ngram == 0 && std::none_of(written.begin(), written.end(), begins)) return logits;
  return with_rows_changed(logits, operation, [&](size_t r, auto* x, i64 K) {
    const std::vector<i32>& tokens = written[r].tokens;
    using T = std::remove_reference_t<decltype(*x)>;
    constexpr T excluded = -std::numeric_limits<T>::infinity();
    if (begins(written[r])) {
      const i32 next = constraints.prefixes[written[r].number][tokens.size() - constraints.prompt.size()];
      check(next >= 0 && next < K, operation, "a prefix has token ", next, ", which is none of the model's ", K);
      const T kept = x[next];
      std::fill_n(x, K, excluded);
      x[next] = kept;
    } else if (constraints.no_repeat_ngram > 0) {
      for (const i32 token : repeating(tokens, constraints.no_repeat_ngram))
        if (token >= 0 && token < K) x[token] = excluded;
    }
    const bool any = std::any_of(x, x + K, [](T score) { return !(score == -std::numeric_limits<T>::infinity()); });
    check(any, operation, "no token is left after ", tokens.size(), " that the constraints permit");
  });
}

}  // namespace orrery::nn
