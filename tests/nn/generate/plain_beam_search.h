// Chapter 7. What tests of beam search compare it with: its plain form, without a cache and without haste.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/random.h"
#include "core/tensor_ops.h"
#include "nn/generate/beam_search.h"

namespace orrery::small {

using Tokens = std::vector<i32>;
// The logits after the tokens of one source, `bos` included.
using LogitsAfter = std::function<std::vector<double>(i64 source, const Tokens& tokens)>;

inline constexpr i32 end_token = 2;

// Computes every step from all tokens, and keeps the sequences themselves instead of a state.
class PlainDecoder : public nn::StepwiseDecoder {
 public:
  PlainDecoder(i64 sources, LogitsAfter logits) : logits_(std::move(logits)) {
    for (i64 source = 0; source < sources; ++source) sequences_.push_back({source, {}});
  }
  Tensor next_logits(const Tensor& tokens) override {
    ++steps;
    REQUIRE(tokens.shape() == Shape{std::ssize(sequences_), 1});
    std::vector<double> all;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      sequences_[i].tokens.push_back(tokens.data<i32>()[i]);
      const std::vector<double> row = logits_(sequences_[i].source, sequences_[i].tokens);
      all.insert(all.end(), row.begin(), row.end());
    }
    const i64 R = std::ssize(sequences_);
    return Tensor::of<double>({R, std::ssize(all) / R}, all);
  }
  void choose(std::span<const i64> chosen) override {
    std::vector<Sequence> next;
    for (const i64 i : chosen) next.push_back(sequences_.at(static_cast<size_t>(i)));
    sequences_ = std::move(next);
  }
  i64 steps = 0;

 private:
  struct Sequence {
    i64 source;
    Tokens tokens;
  };
  LogitsAfter logits_;
  std::vector<Sequence> sequences_;
};

inline std::vector<double> log_probabilities(std::vector<double> logits) {
  double total = 0;
  for (const double x : logits) total += std::exp(x);
  for (double& x : logits) x -= std::log(total);
  return logits;
}

// The log-probabilities after `written` as constraints.h has them, token by token.
inline std::vector<double> constrained_plainly(std::vector<double> logits, const Tokens& written,
                                               const nn::Constraints& c, size_t source) {
  logits = log_probabilities(logits);
  for (const i32 token : std::set<i32>(written.begin(), written.end())) {
    double& x = logits[static_cast<size_t>(token)];
    x = x > 0 ? x / c.repetition_penalty : x * c.repetition_penalty;
  }
  logits = log_probabilities(logits);
  const Tokens prefix = c.prefixes.empty() ? Tokens() : c.prefixes[source];
  const i64 n = c.no_repeat_ngram;
  Tokens longer = written;
  longer.push_back(0);
  for (i32& k = longer.back(); k < std::ssize(logits); ++k) {
    const auto end = longer.end();
    const bool repeats =
        n > 0 && std::ssize(longer) > n && std::search(longer.begin(), end - 1, end - n, end) != end - 1;
    if (written.size() < prefix.size() ? prefix[written.size()] != k : repeats)
      logits[static_cast<size_t>(k)] = -INFINITY;
  }
  return logits;
}

// What the header of beam_search.h says, for one source and without caring for speed: it never stops early. Those that
// are finished, the best first.
inline std::vector<nn::Hypothesis> searched_plainly(const std::function<std::vector<double>(const Tokens&)>& logits,
                                                    i64 limit, const nn::BeamOptions& options, size_t source = 0) {
  std::vector<nn::Hypothesis> live(1), finished;
  const auto likelier = [](const nn::Hypothesis& a, const nn::Hypothesis& b) {
    return a.log_probability > b.log_probability;
  };
  for (i64 length = 1; !live.empty() && std::ssize(finished) < options.beam; ++length) {
    std::vector<nn::Hypothesis> extended;
    for (const nn::Hypothesis& hypothesis : live) {
      Tokens read{options.bos};
      read.insert(read.end(), hypothesis.tokens.begin(), hypothesis.tokens.end());
      const std::vector<double> next =
          constrained_plainly(logits(read), hypothesis.tokens, options.constraints, source);
      for (size_t k = 0; k < next.size(); ++k) {
        if (next[k] == -INFINITY && options.constraints.any()) continue;
        extended.push_back(hypothesis);
        extended.back().tokens.push_back(static_cast<i32>(k));
        extended.back().log_probability += next[k];
      }
    }
    std::stable_sort(extended.begin(), extended.end(), likelier);
    live.clear();
    for (size_t rank = 0; rank < extended.size(); ++rank) {
      nn::Hypothesis& h = extended[rank];
      h.score = h.log_probability / std::pow(static_cast<double>(length), options.length_penalty);
      const bool ends = h.tokens.back() == options.eos || length == limit;
      if (ends && static_cast<i64>(rank) < options.beam) finished.push_back(h);
      if (!ends && std::ssize(live) < options.beam) live.push_back(h);
    }
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const nn::Hypothesis& a, const nn::Hypothesis& b) { return a.score > b.score; });
  return finished;
}
// A table of random logits for every beginning, made when it is asked for.
inline LogitsAfter random_table(i64 K, u64 seed, double spread, double least = 0) {
  return [=, table = std::make_shared<std::map<std::pair<i64, Tokens>, std::vector<double>>>(),
          rng = std::make_shared<Rng>(seed)](i64 source, const Tokens& tokens) {
    std::vector<double>& row = (*table)[{source, tokens}];
    while (std::ssize(row) < K) row.push_back(least + spread * rng->uniform());
    return row;
  };
}

inline nn::Hypothesis searched_in(const LogitsAfter& table, i64 limit, const nn::BeamOptions& options) {
  PlainDecoder decoder(1, table);
  const std::vector<i64> limits{limit};
  return nn::beam_search(decoder, limits, options).at(0);
}

inline void check_same(const nn::Hypothesis& a, const nn::Hypothesis& b, double tolerance) {
  CHECK(a.tokens == b.tokens);
  CHECK(std::abs(a.log_probability - b.log_probability) <= tolerance * static_cast<double>(a.tokens.size()));
  CHECK(std::abs(a.score - b.score) <= tolerance);
}

}  // namespace orrery::small
