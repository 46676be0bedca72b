// Chapter 7. Beam search: against a plain form of itself without a cache, against all sentences there are, against
// greedy decoding; length penalties by hand, ties, ends, threads, and mistakes.
#include "nn/generate/beam_search.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>

#include "core/machine/parallel.h"
#include "nn/generate/decoding.h"
#include "tests/nn/compare.h"
#include "tests/nn/generate/linear_attention.h"
#include "tests/nn/generate/plain_beam_search.h"

using namespace orrery;
using namespace orrery::small;
using nn::BeamOptions;
using nn::Hypothesis;

namespace {

// Probabilities of the tokens 0, 1, 2 (the end) and 3 after each beginning without bos; equal ones after all others.
LogitsAfter table_of(const std::map<Tokens, std::vector<double>>& table) {
  return [=](i64, const Tokens& tokens) {
    const auto found = table.find({tokens.begin() + 1, tokens.end()});
    std::vector<double> row = found == table.end() ? std::vector<double>(4, 0.25) : found->second;
    for (double& p : row) p = std::log(p);
    return row;
  };
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
