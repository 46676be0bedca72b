// Chapter 7. Sampling: what may be drawn, how often it is drawn, and that a seed fixes it.
#include "nn/generate/sampling.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3.
Tensor logits() {
  return Tensor::of<float>({4}, {std::log(0.1F) + 5, std::log(0.4F) + 5, std::log(0.2F) + 5, std::log(0.3F) + 5});
}

std::vector<i32> tokens(const std::vector<Candidate>& list) {
  std::vector<i32> result;
  for (const Candidate& c : list) result.push_back(c.token);
  return result;
}

double total(const std::vector<Candidate>& list) {
  double sum = 0;
  for (const Candidate& c : list) sum += c.probability;
  return sum;
}

}  // namespace

TEST_CASE("without options it is softmax") {
  const auto list = candidates(logits(), {});
  CHECK(tokens(list) == std::vector<i32>{0, 1, 2, 3});
  CHECK(list[0].probability == doctest::Approx(0.1));
  CHECK(list[1].probability == doctest::Approx(0.4));
  CHECK(total(list) == doctest::Approx(1));
}

TEST_CASE("top-k keeps the k likeliest, in proportion") {
  const auto list = candidates(logits(), {.top_k = 2});
  CHECK(tokens(list) == std::vector<i32>{1, 3});
  CHECK(list[0].probability == doctest::Approx(4.0 / 7));
  CHECK(tokens(candidates(logits(), {.top_k = 99})) == std::vector<i32>{0, 1, 2, 3});
  CHECK(tokens(candidates(zeros({5}), {.top_k = 3})) == std::vector<i32>{0, 1, 2});  // equals: the smaller id
}

TEST_CASE("top-p keeps the fewest that reach p") {
  CHECK(tokens(candidates(logits(), {.top_p = 0.39})) == std::vector<i32>{1});
  CHECK(tokens(candidates(logits(), {.top_p = 0.69})) == std::vector<i32>{1, 3});
  CHECK(tokens(candidates(logits(), {.top_p = 0.71})) == std::vector<i32>{1, 3, 2});
  const auto list = candidates(logits(), {.top_p = 0.999});
  CHECK(tokens(list) == std::vector<i32>{1, 3, 2, 0});
  CHECK(total(list) == doctest::Approx(1));
  // After top-k = 3 the probabilities are 4/9, 3/9, 2/9.
  CHECK(tokens(candidates(logits(), {.top_k = 3, .top_p = 0.44})) == std::vector<i32>{1});
  CHECK(tokens(candidates(logits(), {.top_k = 3, .top_p = 0.45})) == std::vector<i32>{1, 3});
}

TEST_CASE("top-p keeps the token that reaches p exactly") {
  CHECK(tokens(candidates(zeros({4}), {.top_p = 0.5})) == std::vector<i32>{0, 1});
  CHECK(tokens(candidates(zeros({4}), {.top_p = 1})) == std::vector<i32>{0, 1, 2, 3});
}

TEST_CASE("a logit of -infinity bans its token, and one token at least must be left") {
  constexpr float never = -std::numeric_limits<float>::infinity();
  const Tensor some = Tensor::of<float>({4}, {0, never, 0, never}), none = full({4}, never);
  for (const SamplingOptions& options : {SamplingOptions{}, {.top_k = 3}, {.top_p = 0.99}, {.temperature = 1e-300}}) {
    CHECK(tokens(candidates(some, options)) == std::vector<i32>{0, 2});
    CHECK(candidates(some, options)[1].probability == doctest::Approx(0.5));
  }
  CHECK(tokens(candidates(some, {.temperature = 0})) == std::vector<i32>{0});
  CHECK_THROWS_WITH_AS(candidates(none, {}), doctest::Contains("no token is left"), Error);
}

TEST_CASE("the temperature sharpens and flattens, and 0 takes the likeliest without a draw") {
  const auto sharp = candidates(logits(), {.temperature = 0.5}), flat = candidates(logits(), {.temperature = 1000});
  CHECK(sharp[1].probability == doctest::Approx(0.16 / 0.30));
  CHECK(flat[0].probability == doctest::Approx(0.25).epsilon(0.01));
  CHECK(candidates(logits(), {.temperature = 1e-300})[1].probability == 1);
  Rng rng(1);
  CHECK(sample(logits(), {.temperature = 0}, rng) == 1);
  CHECK(rng.position() == 0);
  CHECK(sample(zeros({3}), {.temperature = 0}, rng) == 0);
}

TEST_CASE("tokens are drawn as often as they are likely, and a seed fixes them") {
  constexpr int draws = 20000;
  std::array<int, 4> count{};
  Rng rng(7), again(7);
  for (int i = 0; i < draws; ++i) {
    const i32 token = sample(logits(), {}, rng);
    REQUIRE(token == sample(logits(), {}, again));
    ++count[static_cast<size_t>(token)];
  }
  const std::array<double, 4> expected{0.1, 0.4, 0.2, 0.3};
  for (size_t k = 0; k < 4; ++k) {
    const double mean = draws * expected[k], deviation = std::sqrt(mean * (1 - expected[k]));
    CHECK(std::abs(count[k] - mean) < 4 * deviation);
  }
  for (int i = 0; i < 200; ++i) CHECK(sample(logits(), {.top_p = 0.5}, rng) % 2 == 1);
}

TEST_CASE("f64 logits and large ones are fine; what is not finite or out of range is refused") {
  Rng rng(1);
  CHECK(sample(Tensor::of<double>({2}, {1e300, -1e300}), {}, rng) == 0);
  CHECK_THROWS_WITH_AS(sample(Tensor::of<float>({2}, {1, NAN}), {}, rng), "sample: logit 1 is nan", Error);
  CHECK_THROWS_WITH_AS(sample(logits(), {.temperature = -1}, rng), doctest::Contains("temperature"), Error);
  CHECK_THROWS_WITH_AS(sample(logits(), {.temperature = NAN}, rng), doctest::Contains("temperature"), Error);
  CHECK_THROWS_WITH_AS(sample(logits(), {.top_k = -1}, rng), doctest::Contains("top_k"), Error);
  CHECK_THROWS_WITH_AS(sample(logits(), {.top_p = 0}, rng), doctest::Contains("top_p"), Error);
  CHECK_THROWS_AS(sample(zeros({0}), {}, rng), Error);
}
