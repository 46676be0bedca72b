// Chapter 9. Training a small GPT on a small text: it learns, to the same bits on any number of threads, and is judged.
#include "apps/lm/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// Odd sizes, so that no tile or chunk comes out even.
LmRecipe small_lm_recipe() {
  LmRecipe recipe;
  recipe.model.layer.d_model = 15, recipe.model.layer.num_heads = 3, recipe.model.layer.d_ff = 37,
  recipe.model.num_layers = 2;
  recipe.model.max_len = 11, recipe.model.layer.dropout = 0.1;
  recipe.steps = 30, recipe.batch = 5, recipe.warmup = 10, recipe.rate = 1e-2, recipe.last_rate = 1e-3;
  recipe.estimate_every = 10, recipe.estimate_batches = 3;
  return recipe;
}

TextData counting() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "one two three four ";
  return text_data(text, 11);
}

std::string hash_after(int threads) {
  const int before = orrery::threads();
  set_threads(threads);
  LmTraining training(small_lm_recipe(), counting());
  for (int i = 0; i < 12; ++i) training.step();
  set_threads(before);
  return training.hash();
}

}  // namespace

TEST_CASE("the default recipe is nanoGPT's for a CPU, but for the order of blocks and the average") {
  const LmRecipe recipe;
  CHECK(recipe.model.num_layers == 4);
  CHECK(recipe.model.layer.num_heads == 4);
  CHECK(recipe.model.layer.d_model == 128);
  CHECK(recipe.model.layer.d_ff == 512);
  CHECK(recipe.model.max_len == 64);
  CHECK(recipe.model.layer.dropout == 0);
  CHECK_FALSE(recipe.model.layer.bias);
  CHECK(recipe.model.tied);
  CHECK(recipe.model.layer.activation == nn::Activation::gelu);
  CHECK(recipe.batch == 12);
  CHECK(recipe.steps == 2000);
  CHECK(recipe.beta1 == 0.9);
  CHECK(recipe.beta2 == 0.99);
  CHECK(recipe.weight_decay == 0.1);
  CHECK(recipe.clip == 1);
  CHECK_FALSE(recipe.replacement);
  CHECK(recipe.average == recipe.beta2);
  CHECK(recipe.rate_of(50) == doctest::Approx(5e-4));
  CHECK(recipe.rate_of(100) == doctest::Approx(1e-3));
  CHECK(recipe.rate_of(1050) == doctest::Approx(5.5e-4));
  CHECK(recipe.rate_of(2000) == doctest::Approx(1e-4));
}

TEST_CASE("a small model learns to count, and evaluations agree with each other") {
  LmTraining training(small_lm_recipe(), counting());
  const double first = training.validation_loss();
  CHECK(first == doctest::Approx(std::log(12)).epsilon(0.05));
  for (i64 i = 0; i < 30; ++i) training.step();
  CHECK(training.steps_done() == 30);
  const double last = training.validation_loss();
  CHECK(last < 0.8 * first);
  CHECK(training.estimate() == doctest::Approx(last).epsilon(0.1));
  CHECK(training.best_step() == 30);
  CHECK(training.finish_with_best() == last);
  CHECK(training.sample(40).size() == 40);
  CHECK(training.sample(40) == training.sample(40));
  CHECK(training.sample(20) == training.sample(40).substr(0, 20));
}

TEST_CASE("warm-up follows from the steps unless it is given") {
  LmRecipe recipe;
  CHECK(recipe.warmup_steps() == 100);
  recipe.steps = 50;
  CHECK(recipe.warmup_steps() == 2);
  recipe.steps = 1;
  CHECK(recipe.warmup_steps() == 0);
  CHECK(recipe.rate_of(1) == doctest::Approx(recipe.last_rate));
  recipe.steps = 50, recipe.warmup = 10;
  CHECK(recipe.warmup_steps() == 10);
}

TEST_CASE("a training that was interrupted equals to the bit one that was not: N + N = 2 N") {
  LmRecipe recipe = small_lm_recipe();
  recipe.estimate_every = 4;
  const auto train = [&](LmTraining& training, i64 until) {
    while (training.steps_done() < until) {
      training.step();
      if (training.steps_done() % recipe.estimate_every == 0) training.estimate();
    }
  };
  for (const double average : {0.0, 0.9}) {
    CAPTURE(average);
    recipe.average = average;
    LmTraining whole(recipe, counting());
    train(whole, 12);
    for (const i64 stop : {0, 3, 4, 6, 11}) {  // before, at and after an estimate
      CAPTURE(stop);
      LmTraining first(recipe, counting()), second(recipe, counting());
      train(first, stop);
      second.load_state(first.state());
      CHECK(second.hash() == first.hash());
      CHECK(second.best_step() == first.best_step());
      train(second, 12);
      CHECK(second.hash() == whole.hash());
      CHECK(second.validation_loss() == whole.validation_loss());
      CHECK(second.best_estimate() == whole.best_estimate());
      CHECK(second.finish_with_best() == second.validation_loss());
    }
  }
}

TEST_CASE("the best model comes back where the last is worse on the whole validation text") {
  LmRecipe recipe = small_lm_recipe();
  recipe.rate = 3e-2;
  recipe.average = 0;
  LmTraining training(recipe, counting());
  for (int i = 0; i < 15; ++i) training.step();
  training.estimate();
  const double best = training.validation_loss();
  for (NamedParameter& p : training.model().parameters()) scale_in_place(p.value.mutable_value(), -1.0);
  training.step();
  CHECK(training.best_step() == 15);
  REQUIRE(training.validation_loss() > best);
  const LmState state = training.state();
  CHECK(state.tensors.contains("best.wte.weight"));
  LmTraining resumed(recipe, counting());
  resumed.load_state(state);
  CHECK(training.finish_with_best() == best);
  CHECK(training.validation_loss() == best);
  CHECK(resumed.finish_with_best() == best);
}

TEST_CASE("the averaged model is sum_i beta^(t - i) theta_i (1 - beta) / (1 - beta^t), and moves no training") {
  LmRecipe recipe = small_lm_recipe(), plain = small_lm_recipe();
  recipe.average = 0.75, plain.average = 0;
  LmTraining averaged(recipe, counting()), trained(plain, counting());
  std::map<std::string, Tensor> sums;
  double weights = 0;
  for (int t = 1; t <= 9; ++t) {
    CHECK(averaged.step() == trained.step());
    averaged.estimate();
    weights = 0.75 * weights + 0.25;
    for (const NamedParameter& p : trained.model().parameters()) {
      const Tensor theta = p.value.value().to(f64) * 0.25;
      sums[p.name] = t == 1 ? theta : sums[p.name] * 0.75 + theta;
    }
  }
  CHECK(weights == doctest::Approx(1 - std::pow(0.75, 9)));
  CHECK(averaged.hash() == trained.hash());
  for (const NamedParameter& p : averaged.model().parameters())
    CHECK(std::sqrt(sum_of_squares(p.value.value().to(f64) - sums[p.name] * (1 / weights))) < 1e-6);
  CHECK(averaged.validation_loss() == loss_over(averaged.model(), counting().validation));
  CHECK(averaged.validation_loss() != trained.validation_loss());
}

TEST_CASE("blocks come from the shuffled text, or with replacement from anywhere; both go on where they stopped") {
  const std::string shuffled = hash_after(1);
  for (const bool replacement : {false, true}) {
    LmRecipe recipe = small_lm_recipe();
    recipe.replacement = replacement;
    LmTraining whole(recipe, counting()), first(recipe, counting()), second(recipe, counting());
    for (int i = 0; i < 12; ++i) whole.step();
    CHECK((whole.hash() == shuffled) == !replacement);
    for (int i = 0; i < 5; ++i) first.step();
    second.load_state(first.state());
    second.measure();
    for (int i = 0; i < 7; ++i) second.step();
    CHECK(second.hash() == whole.hash());
  }
}

TEST_CASE("a state of another training is refused, and a recipe goes through JSON unchanged") {
  LmRecipe recipe = small_lm_recipe(), wider = small_lm_recipe();
  wider.model.layer.d_ff = 38;
  LmTraining training(recipe, counting()), other(wider, counting());
  training.step();
  CHECK_THROWS_AS(other.load_state(training.state()), Error);
  LmState broken = training.state();
  broken.steps_done = 2;
  CHECK_THROWS_WITH_AS(LmTraining(recipe, counting()).load_state(broken), doctest::Contains("not of a training"),
                       Error);
  recipe.rate = 1.0 / 3;
  const LmRecipe read = lm_recipe(to_json(recipe));
  CHECK(read.rate == recipe.rate);
  CHECK(to_json(read) == to_json(recipe));
  CHECK_THROWS_WITH_AS(lm_recipe(R"({"steps": 0})"), doctest::Contains("steps must be positive"), Error);
  CHECK_THROWS_WITH_AS(lm_recipe(R"({"steps": 5, "warmup": 5})"), doctest::Contains("warmup (5)"), Error);
}

TEST_CASE("the validation loss is the mean over every character that follows another") {
  const TextData data = counting();
  LmTraining training(small_lm_recipe(), data);
  for (i64 i = 0; i < 5; ++i) training.step();
  const i64 count = data.validation.count() - 1;
  REQUIRE(count % 11 != 0);  // a shorter block at the end
  double total = 0;
  for (i64 begin = 0; begin < count; begin += 11) {
    const TextBatch block = blocks_from(data.validation, begin, 1, std::min<i64>(11, count - begin));
    nn::Pass pass;
    total += cross_entropy(training.model()(block.ids, pass), block.labels, {.reduction = Reduction::sum}).item();
  }
  CHECK(training.validation_loss() == doctest::Approx(total / static_cast<double>(count)).epsilon(1e-6));
}

TEST_CASE("the same bits for 1, 2, 3, 4 and 8 threads, dropout on") {
  const std::string hash = hash_after(1);
  for (int threads : {2, 3, 4, 8}) CHECK(hash_after(threads) == hash);
}

TEST_CASE("measuring, estimating and judging change nothing that is trained") {
  LmTraining judged(small_lm_recipe(), counting()), plain(small_lm_recipe(), counting());
  CHECK(judged.measure() > 0);
  for (int i = 0; i < 3; ++i) {
    judged.step(), plain.step();
    judged.estimate();
    judged.validation_loss();
  }
  CHECK(judged.hash() == plain.hash());
  LmRecipe other = small_lm_recipe();
  other.seed = 2;
  LmTraining different(other, counting());
  for (int i = 0; i < 3; ++i) different.step();
  CHECK(different.hash() != plain.hash());
}

TEST_CASE("a step that meets NaN is not made, and the error names where it began") {
  LmRecipe recipe = small_lm_recipe();
  recipe.average = 0;
  LmTraining training(recipe, counting());
  training.step();
  for (NamedParameter& p : training.model().parameters())
    if (p.name == "h.0.mlp.c_fc.weight") p.value.mutable_value().write<float>()[4] = NAN;
  const std::string before = training.hash();
  const std::string error = small::error_of([&] { training.step(); });
  CHECK(error.starts_with("lm: step 2 was not made, because a number is not finite; a smaller --rate"));
  CHECK(error.find("\ntrain: the loss is not finite") != std::string::npos);
  CHECK(error.find("h.0.mlp.c_fc.weight") != std::string::npos);
  CHECK(training.hash() == before);
  CHECK(training.steps_done() == 1);
}

TEST_CASE("weight decay falls on matrices alone") {
  LmRecipe recipe = small_lm_recipe();
  recipe.model.layer.bias = true, recipe.rate = recipe.last_rate = 0.1, recipe.weight_decay = 5, recipe.warmup = 1;
  LmRecipe without = recipe;
  without.weight_decay = 0;
  LmTraining decayed(recipe, counting()), plain(without, counting());
  decayed.step(), plain.step();
  const Parameters a = decayed.model().parameters(), b = plain.model().parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].name);
    CHECK(same_bits(a[i].value.value(), b[i].value.value()) == (a[i].value.shape().rank() == 1));
  }
}

TEST_CASE("a training whose last steps went wrong ends with its best model") {
  LmTraining training(small_lm_recipe(), counting());
  for (int i = 0; i < 3; ++i) training.step();
  training.estimate();
  const double best = training.validation_loss();
  training.step();
  for (NamedParameter p : training.model().parameters()) p.value.mutable_value().write<float>()[0] = NAN;
  CHECK(std::isnan(training.validation_loss()));
  CHECK(training.finish_with_best() == best);
}
