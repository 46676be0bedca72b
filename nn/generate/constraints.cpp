// Chapter 7. Constraints: for each sequence, the scores that are discounted, and those that become -infinity.
#include "nn/generate/constraints.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

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

void Constraints::check_options(std::string_view operation, i64 sequences) const {
  check(repetition_penalty > 0 && std::isfinite(repetition_penalty), operation,
        "the repetition penalty must be above 0 and finite, not ", repetition_penalty);
  check(no_repeat_ngram >= 0, operation, "no_repeat_ngram must be 0 or more, not ", no_repeat_ngram);
  check(prefixes.empty() || std::ssize(prefixes) == sequences, operation, std::ssize(prefixes),
        " prefixes are given for ", sequences, " sequences");
}

Tensor penalized(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints) {
  const double theta = constraints.repetition_penalty;
  if (theta == 1) return logits;
  return with_rows_changed(logits, "repetition penalty", [&](size_t r, auto* x, i64 K) {
    for (const i32 token : std::set<i32>(written[r].tokens.begin(), written[r].tokens.end())) {
      if (token < 0 || token >= K) continue;
      const double score = static_cast<double>(x[token]);
      x[token] = static_cast<std::remove_reference_t<decltype(*x)>>(score > 0 ? score / theta : score * theta);
    }
  });
}

Tensor permitted(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints,
                 std::string_view operation) {
  if (constraints.no_repeat_ngram == 0 && constraints.prefixes.empty()) return logits;
  return with_rows_changed(logits, operation, [&](size_t r, auto* x, i64 K) {
    const auto& [number, tokens] = written[r];
    using T = std::remove_reference_t<decltype(*x)>;
    constexpr T excluded = -std::numeric_limits<T>::infinity();
    const size_t place = tokens.size() - constraints.prompt.size();
    if (!constraints.prefixes.empty() && place < constraints.prefixes[number].size()) {
      const i32 next = constraints.prefixes[number][place];
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
