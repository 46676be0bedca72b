// Chapter 7. Beam search: against a plain form of itself without a cache, against all sentences there are, against
// greedy decoding; length penalties by hand, ties, ends, threads, and mistakes.
#include "nn/generate/beam_search.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/machine/parallel.h"
#include "nn/generate/decoding.h"
#include "tests/nn/compare.h"
#include "tests/nn/generate/linear_attention.h"

using namespace orrery;
using nn::BeamOptions;
using nn::Hypothesis;
using nn::StepwiseDecoder;

namespace {

using Tokens = std::vector<i32>;
// The logits after the tokens of one source, `bos` included.
using LogitsAfter = std::function<std::vector<double>(i64 source, const Tokens& tokens)>;

constexpr i32 end_token = 2;

// Computes every step from all tokens, and keeps the sequences themselves instead of a state.
class PlainDecoder : public StepwiseDecoder {
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

std::vector<double> log_probabilities(std::vector<double> logits) {
  double total = 0;
  for (const double x : logits) total += std::exp(x);
  for (double& x : logits) x -= std::log(total);
  return logits;
}

// The log-probabilities after `written` as constraints.h has them, token by token.
std::vector<double> constrained_plainly(std::vector<double> logits, const Tokens& written, const nn::Constraints& c,
                                        size_t source) {
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
std::vector<Hypothesis> searched_plainly(const std::function<std::vector<double>(const Tokens&)>& logits, i64 limit,
                                         const BeamOptions& options, size_t source = 0) {
  std::vector<Hypothesis> live(1), finished;
  const auto likelier = [](const Hypothesis& a, const Hypothesis& b) { return a.log_probability > b.log_probability; };
  for (i64 length = 1; !live.empty() && std::ssize(finished) < options.beam; ++length) {
    std::vector<Hypothesis> extended;
    for (const Hypothesis& hypothesis : live) {
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
      Hypothesis& h = extended[rank];
      h.score = h.log_probability / std::pow(static_cast<double>(length), options.length_penalty);
      const bool ends = h.tokens.back() == options.eos || length == limit;
      if (ends && static_cast<i64>(rank) < options.beam) finished.push_back(h);
      if (!ends && std::ssize(live) < options.beam) live.push_back(h);
    }
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return finished;
}
// A table of random logits for every beginning, made when it is asked for.
LogitsAfter random_table(i64 K, u64 seed, double spread, double least = 0) {
  return [=, table = std::make_shared<std::map<std::pair<i64, Tokens>, std::vector<double>>>(),
          rng = std::make_shared<Rng>(seed)](i64 source, const Tokens& tokens) {
    std::vector<double>& row = (*table)[{source, tokens}];
    while (std::ssize(row) < K) row.push_back(least + spread * rng->uniform());
    return row;
  };
}

// Probabilities of the tokens 0, 1, 2 (the end) and 3 after each beginning without bos; equal ones after all others.
LogitsAfter table_of(const std::map<Tokens, std::vector<double>>& table) {
  return [=](i64, const Tokens& tokens) {
    const auto found = table.find({tokens.begin() + 1, tokens.end()});
    std::vector<double> row = found == table.end() ? std::vector<double>(4, 0.25) : found->second;
    for (double& p : row) p = std::log(p);
    return row;
  };
}

Hypothesis searched_in(const LogitsAfter& table, i64 limit, const BeamOptions& options) {
  PlainDecoder decoder(1, table);
  const std::vector<i64> limits{limit};
  return nn::beam_search(decoder, limits, options).at(0);
}

// Larger weights than a new model has, so that its sentences differ, and some of them end.
nn::Transformer lively_translator(i64 K, u64 seed, Dtype dtype, i64 d_model = 16) {
  Rng rng(seed);
  nn::Transformer model({.src_vocab_size = K,
                         .tgt_vocab_size = K,
                         .layer = {.d_model = d_model, .num_heads = 2, .d_ff = 24},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 2,
                         .max_len = 40,
                         .pad_id = 0},
                        rng);
  for (Variable* weight : {&model.src_embed.weight, &model.tgt_embed.weight, &model.generator.weight})
    scale_in_place(weight->mutable_value(), 3.0);
  for (nn::DecoderLayer& layer : model.decoder.layers)
    scale_in_place(layer.multihead_attn.as<nn::MultiHeadAttention>().out_proj.weight.mutable_value(), 4.0);
  model.generator.bias.mutable_value()(end_token) += 1.0;
  to(model, dtype);
  return model;
}

Tensor padded_sources(i64 B, i64 S, i64 K, Rng& rng) {
  Tensor source = randint(3, K, {B, S}, rng);
  for (i64 b = 0; b < B; ++b) {
    for (i64 s = S - b % (S - 1); s < S; ++s) source(b, s) = 0;
  }
  return source;
}

// The model's logits for a whole target, without a cache.
LogitsAfter logits_without_cache(const nn::Transformer& model, const Tensor& source) {
  return [&model, source](i64 row, const Tokens& tokens) {
    const NoGradient nothing_recorded;
    nn::Pass pass = nn::Pass::inference();
    const Tensor one = source.rows(row, row + 1), target = Tensor::of<i32>({1, std::ssize(tokens)}, tokens);
    const Mask mask = model.padding(one);
    const Tensor logits =
        model.decode(target, model.encode(one, mask, pass), Mask::causal(), mask, pass).value().to(f64);
    const double* last = logits.data<double>() + logits.count() - logits.size(-1);
    return std::vector<double>(last, last + logits.size(-1));
  };
}

void check_same(const Hypothesis& a, const Hypothesis& b, double tolerance) {
  CHECK(a.tokens == b.tokens);
  CHECK(std::abs(a.log_probability - b.log_probability) <= tolerance * static_cast<double>(a.tokens.size()));
  CHECK(std::abs(a.score - b.score) <= tolerance);
}

}  // namespace

TEST_CASE("beam search equals its plain form on random tables: beams, penalties, limits, several sources") {
  for (const i64 beam : {1, 2, 3, 5}) {
    for (const double penalty : {0.0, 0.6, 1.0, 2.0}) {
      const LogitsAfter table = random_table(5, static_cast<u64>(beam), 4.0);
      const std::vector<i64> limits{6, 1, 4, 2, 6, 3};
      const BeamOptions options{.beam = beam, .length_penalty = penalty};
      PlainDecoder decoder(std::ssize(limits), table);
      const std::vector<Hypothesis> found = nn::beam_search(decoder, limits, options);
      for (size_t source = 0; source < limits.size(); ++source) {
        CAPTURE(beam);
        CAPTURE(penalty);
        CAPTURE(source);
        const Hypothesis expected = searched_plainly(
            [&](const Tokens& tokens) { return table(static_cast<i64>(source), tokens); }, limits[source], options)[0];
        check_same(found[source], expected, 1e-12);
      }
    }
  }
}

TEST_CASE("the n best, the repetition penalty, n-grams and prefixes are those of the plain form, alone and together") {
  const std::vector<i64> limits{7, 3, 9, 4};
  const std::vector<Tokens> prefixes{{3}, {}, {4, 4, 0}, {0, 1}};
  i64 different = 0;
  for (const nn::Constraints& constraints :
       {nn::Constraints{}, nn::Constraints{.repetition_penalty = 1.7}, nn::Constraints{.no_repeat_ngram = 1},
        nn::Constraints{.no_repeat_ngram = 2}, nn::Constraints{.prefixes = prefixes},
        nn::Constraints{.repetition_penalty = 1.2, .no_repeat_ngram = 3, .prefixes = prefixes}}) {
    for (const i64 n : {1, 2, 4}) {
      const LogitsAfter table = random_table(5, 7, 4.0, -2.0);
      const BeamOptions options{.beam = 4, .n_best = n, .constraints = constraints};
      PlainDecoder decoder(std::ssize(limits), table);
      const auto found = nn::n_best_search(decoder, limits, options);
      for (size_t source = 0; source < limits.size(); ++source) {
        CAPTURE(n);
        CAPTURE(source);
        const auto logits = [&](const Tokens& tokens) { return table(static_cast<i64>(source), tokens); };
        const auto expected = searched_plainly(logits, limits[source], options, source);
        REQUIRE(std::ssize(found[source]) == std::min(n, std::ssize(expected)));
        for (size_t i = 0; i < found[source].size(); ++i) check_same(found[source][i], expected[i], 1e-12);
        different += found[source][0].tokens != searched_plainly(logits, limits[source], {.beam = 4})[0].tokens;
      }
    }
  }
  CHECK(different > 15);
  const auto refused = [&](const std::vector<Tokens>& wrong) {
    PlainDecoder decoder(1, random_table(5, 7, 4.0));
    return small::error_of(
        [&] { nn::n_best_search(decoder, std::vector<i64>{3}, {.constraints = {.prefixes = wrong}}); });
  };
  CHECK(refused({{3, 4, 3}}) == "beam search: a prefix of 3 tokens leaves no room in a sequence of at most 3");
  CHECK(refused({{3, end_token}}) == "beam search: a prefix has the token that ends a sequence, 2");
  CHECK(refused({{3, 4}}) == "");
}

TEST_CASE("logits and log-probabilities, which differ by a constant for each row, are penalised alike") {
  const LogitsAfter table = random_table(5, 7, 4.0, -2.0);
  const LogitsAfter moved = [&](i64 source, const Tokens& tokens) {
    std::vector<double> logits = table(source, tokens);
    for (double& x : logits) x += 10;
    return logits;
  };
  const BeamOptions options{.constraints = {.repetition_penalty = 1.5}};
  for (const i64 limit : {4, 9})
    check_same(searched_in(moved, limit, options), searched_in(table, limit, options), 1e-9);
}

TEST_CASE("with a beam of all tokens and two steps it finds the likeliest of all sentences") {
  for (u64 seed = 0; seed < 20; ++seed) {
    const LogitsAfter table = random_table(4, seed, 3.0);
    Hypothesis best{{}, -INFINITY, 0};
    const auto consider = [&](const Tokens& tokens, double log_probability) {
      if (log_probability > best.log_probability) best = {tokens, log_probability, log_probability};
    };
    const std::vector<double> first = log_probabilities(table(0, {1}));
    for (i32 a = 0; a < 4; ++a) {
      if (a == end_token) consider({end_token}, first[end_token]);
      const std::vector<double> second = log_probabilities(table(0, {1, a}));
      for (i32 b = 0; b < 4 && a != end_token; ++b)
        consider({a, b}, first[static_cast<size_t>(a)] + second[static_cast<size_t>(b)]);
    }
    check_same(searched_in(table, 2, {.beam = 4, .length_penalty = 0}), best, 1e-12);
  }
}

TEST_CASE("an unlikely token may begin the likelier sentence, which greedy decoding misses") {
  const LogitsAfter table =
      table_of({{{}, {0.5, 0.4, 0.05, 0.05}}, {{0}, {0.3, 0.3, 0.3, 0.1}}, {{1}, {0.02, 0.03, 0.9, 0.05}}});
  CHECK(searched_in(table, 2, {.beam = 1, .length_penalty = 0}).tokens == Tokens{0, 0});
  const Hypothesis found = searched_in(table, 2, {.beam = 2, .length_penalty = 0});
  CHECK(found.tokens == Tokens{1, end_token});
  CHECK(found.log_probability == doctest::Approx(std::log(0.4 * 0.9)));
}

TEST_CASE("the length penalty divides by the number of tokens, the end included, to its power") {
  // The end at once: log 0.3. Or two tokens and the end: log(0.6 * 0.6 * 0.7).
  const LogitsAfter table =
      table_of({{{}, {0.6, 0.05, 0.3, 0.05}}, {{0}, {0.6, 0.15, 0.1, 0.15}}, {{0, 0}, {0.1, 0.1, 0.7, 0.1}}});
  const double at_once = std::log(0.3), later = std::log(0.6 * 0.6 * 0.7);
  CHECK(at_once > later);
  const Hypothesis without = searched_in(table, 6, {.beam = 2, .length_penalty = 0});
  check_same(without, {{end_token}, at_once, at_once}, 1e-12);
  const Hypothesis mean = searched_in(table, 6, {.beam = 2, .length_penalty = 1});
  check_same(mean, {{0, 0, end_token}, later, later / 3}, 1e-12);
  const Hypothesis square = searched_in(table, 6, {.beam = 2, .length_penalty = 2});
  check_same(square, {{0, 0, end_token}, later, later / 9}, 1e-12);
}

TEST_CASE("it stops when no unfinished hypothesis can win, or enough are finished") {
  const BeamOptions options{.beam = 2, .length_penalty = 0};
  const auto steps_of = [](const LogitsAfter& table, i64 limit, const BeamOptions& given) {
    PlainDecoder decoder(1, table);
    const std::vector<i64> limits{limit};
    nn::beam_search(decoder, limits, given);
    return decoder.steps;
  };
  const LogitsAfter likely_end = table_of({{{}, {0.3, 0.1, 0.5, 0.1}}});
  CHECK(steps_of(likely_end, 9, options) == 1);  // nothing grows beyond log 0.3, and the end has log 0.5
  // With a penalty of 1, log 0.3 / 9 would still be better than log 0.5: it goes on until two are finished.
  const LogitsAfter second_end = table_of({{{}, {0.3, 0.1, 0.5, 0.1}}, {{0}, {0.1, 0.1, 0.7, 0.1}}});
  CHECK(steps_of(second_end, 9, {.beam = 2, .length_penalty = 1}) == 2);
  CHECK(steps_of(table_of({}), 5, {.beam = 1}) == 5);  // token 0 again and again
}

TEST_CASE("of equally likely tokens the smaller id comes first") {
  CHECK(searched_in(table_of({}), 3, {.beam = 1}).tokens == Tokens{0, 0, 0});
  const Hypothesis found = searched_in(table_of({{{}, {0.1, 0.4, 0.1, 0.4}}}), 2, {.beam = 2});
  CHECK(found.tokens == Tokens{1, 0});
}

TEST_CASE("impossible tokens are never taken") {
  const LogitsAfter only_three = [](i64, const Tokens&) {
    return std::vector<double>{-INFINITY, -INFINITY, -INFINITY, 1.0};
  };
  const Hypothesis found = searched_in(only_three, 3, {.beam = 3});
  CHECK(found.tokens == Tokens{3, 3, 3});
  CHECK(found.log_probability == 0);
}

TEST_CASE("a beam of 1 is greedy decoding, in f32 and f64") {
  for (const Dtype dtype : {f32, f64}) {
    const nn::Transformer model = lively_translator(11, 7, dtype);
    Rng rng(3);
    const Tensor source = padded_sources(20, 6, 11, rng);
    const Tensor greedy = greedy_decode(model, source, {.max_len = 12});
    const auto found = beam_search(model, source, {.beam = 1, .max_len = 12});
    const auto unlimited =
        beam_search(model, source, {.beam = 1, .max_len = 12, .beyond_source = std::numeric_limits<i64>::max()});
    i64 ended = 0;
    for (i64 b = 0; b < 20; ++b) {
      Tokens row(greedy.data<i32>() + b * greedy.size(1), greedy.data<i32>() + (b + 1) * greedy.size(1));
      row.erase(std::find(row.begin(), row.end(), 0), row.end());
      ended += row.back() == end_token;
      CHECK(found[static_cast<size_t>(b)].tokens == row);
      CHECK(unlimited[static_cast<size_t>(b)].tokens == row);
    }
    CHECK(ended > 3);
    CHECK(ended < 20);
  }
}

TEST_CASE("with the cache it finds what it finds without one, also when the cache grows: scores to 1e-5") {
  enum class Kind { softmax_f32, softmax_f64, own_attention };
  for (const Kind kind : {Kind::softmax_f32, Kind::softmax_f64, Kind::own_attention}) {
    const Dtype dtype = kind == Kind::softmax_f32 ? f32 : f64;
    nn::Transformer model = lively_translator(11, 8, dtype);
    Rng rng(4);
    if (kind == Kind::own_attention) make_linear(model, rng);
    to(model, dtype);
    const Tensor source = padded_sources(6, 6, 11, rng);
    for (const i64 beam : {3, 11}) {
      const BeamOptions options{.beam = beam, .max_len = 37, .beyond_source = 32};
      const auto found = beam_search(model, source, options);
      std::vector<i64> limits;
      const Tensor lengths = lengths_of(source, 0);
      for (i64 b = 0; b < 6; ++b) limits.push_back(std::min<i64>(37, static_cast<i64>(lengths.at(b)) + 32));
      PlainDecoder plain(6, logits_without_cache(model, source));
      const auto expected = nn::beam_search(plain, limits, options);
      size_t longest = 0;
      for (size_t b = 0; b < 6; ++b) {
        longest = std::max(longest, found[b].tokens.size());
        CHECK(std::ssize(found[b].tokens) <= limits[b]);
        check_same(found[b], expected[b], dtype == f32 ? 1e-5 : 1e-12);
      }
      CHECK(longest > 32);  // a cache has room for fewer positions at first
    }
  }
}

TEST_CASE("a source alone gets what it gets in a batch, and nothing is recorded") {
  const nn::Transformer model = lively_translator(13, 1, f64);
  Rng rng(5);
  const Tensor source = padded_sources(7, 5, 13, rng);
  const BeamOptions options{.beam = 4, .length_penalty = 0.6, .max_len = 20};
  NothingRecorded observer;
  const ObserverScope scope(observer);
  const auto together = beam_search(model, source, options);
  std::vector<size_t> lengths;
  for (i64 b = 0; b < 7; ++b) {
    check_same(beam_search(model, source.rows(b, b + 1), options)[0], together[static_cast<size_t>(b)], 1e-11);
    lengths.push_back(together[static_cast<size_t>(b)].tokens.size());
  }
  CHECK(*std::min_element(lengths.begin(), lengths.end()) < *std::max_element(lengths.begin(), lengths.end()));
  CHECK(gradients_are_recorded());
  CHECK(beam_search(model, Tensor::empty({0, 5}, Dtype::i32), options).empty());
}

TEST_CASE("the bits are the same for every number of threads") {
  const nn::Transformer model = lively_translator(700, 1, f32, 32);
  Rng rng(6);
  const Tensor source = padded_sources(30, 9, 700, rng);
  const BeamOptions options{.beam = 5, .max_len = 12};
  std::vector<Hypothesis> expected;
  for (const int count : {1, 2, 3, 4}) {
    const small::Threads scope(count);
    const auto found = beam_search(model, source, options);
    if (count == 1) expected = found;
    REQUIRE(found.size() == 30);
    for (size_t b = 0; b < found.size(); ++b) check_same(found[b], expected[b], 0.0);
  }
}

TEST_CASE("mistakes are told: options out of range, logits that are NaN") {
  const nn::Transformer model = lively_translator(11, 7, f32);
  const Tensor source = full({1, 3}, 4, Dtype::i32);
  const auto message = [&](const BeamOptions& options) {
    try {
      beam_search(model, source, options);
    } catch (const Error& error) { return error.rule(); }
    return std::string("no error");
  };
  CHECK(message({.beam = 0, .max_len = 4}) == "the beam must be 1 or more, not 0");
  CHECK(message({.beam = 12, .max_len = 4}) == "the beam must be from 1 to 11, the size of the vocabulary, not 12");
  CHECK(message({.max_len = 41}) == "max_len must be from 1 to 40, the model's positions, not 41");
  CHECK(message({.max_len = 0}) == "max_len must be from 1 to 40, the model's positions, not 0");
  CHECK(message({.max_len = 4, .beyond_source = 0}) == "beyond_source must be 1 or more, not 0");
  CHECK(message({.length_penalty = -1, .max_len = 4}) == "the length penalty must be 0 or more and finite, not -1");
  CHECK(message({.length_penalty = NAN, .max_len = 4}) == "the length penalty must be 0 or more and finite, not nan");
  CHECK(message({.length_penalty = INFINITY, .max_len = 4}) ==
        "the length penalty must be 0 or more and finite, not inf");
  CHECK(message({.length_penalty = 1000, .max_len = 4}) ==
        "a length penalty of 1000 is too large for 4 tokens: 4^1000 overflows");
  CHECK(message({.length_penalty = 500, .max_len = 4}) == "no error");
  CHECK(message({.max_len = 4}) == "no error");
  const auto with_logit = [](double logit) {
    return [=](i64, const Tokens&) { return std::vector<double>{0.0, logit, 1.0, 0.5}; };
  };
  CHECK_THROWS_WITH_AS(searched_in(with_logit(NAN), 3, {}), "beam search: a logit is NaN or infinity", Error);
  CHECK_THROWS_WITH_AS(searched_in(with_logit(INFINITY), 3, {}), "beam search: a logit is NaN or infinity", Error);
  const auto none = [](i64, const Tokens&) { return std::vector<double>(4, -INFINITY); };
  CHECK_THROWS_WITH_AS(searched_in(none, 3, {}), "beam search: no token is left: every logit of a row is -infinity",
                       Error);
  CHECK_THROWS_WITH_AS(searched_in(table_of({}), 0, {}), "beam search: a limit must be 1 or more, not 0", Error);
  CHECK_THROWS_WITH_AS(searched_in(table_of({}), 3, {.beam = 5}), doctest::Contains("the beam must be from 1 to 4"),
                       Error);
}

TEST_CASE("a search that is stopped ends before its next step, and returns nothing") {
  for (const i64 steps : {0, 1, 3}) {
    PlainDecoder decoder(2, random_table(4, 1, 2.0));
    i64 asked = 0;
    const BeamOptions options{.beam = 2, .eos = -1, .stopped = [&] { return asked++ == steps; }};
    CHECK(nn::beam_search(decoder, std::vector<i64>{9, 9}, options).empty());
    CHECK(decoder.steps == steps);
  }
}
