// Chapter 7. Constraints of beam search, against its plain form: the n best, the repetition penalty, n-grams, prefixes.
#include "nn/generate/constraints.h"

#include "tests/nn/compare.h"
#include "tests/nn/generate/plain_beam_search.h"

using namespace orrery;
using namespace orrery::small;
using nn::BeamOptions;

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
