// Chapter 9. Training a small GPT on a small text: it learns, to the same bits on any number of threads.
#include "apps/tasks/lm/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/apps/tasks/lm/small_lm.h"
#include "tests/apps/training/train_until.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using small::counting;
using small::LmTraining;
using small::small_lm_recipe;

namespace {

std::string hash_after(int threads) {
  const small::Threads wanted(threads);
  LmTraining training(small_lm_recipe(), counting());
  training.steps(12);
  return training.trainer.hash();
}

}  // namespace

TEST_CASE("the default recipe is nanoGPT's for a CPU, except for the order of blocks and the average") {
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
  CHECK(recipe.optimizer == OptimizerKind::adamw);
  CHECK(recipe.eps == 1e-8);
  CHECK(recipe.evaluate_every == 250);
  const auto rate_of = [&](i64 step) { return recipe.resolved().rate_of(step); };
  CHECK(rate_of(50) == doctest::Approx(5e-4));
  CHECK(rate_of(100) == doctest::Approx(1e-3));
  CHECK(rate_of(1050) == doctest::Approx(5.5e-4));
  CHECK(rate_of(2000) == doctest::Approx(1e-4));
}

TEST_CASE("a small model learns to count, and evaluations agree with each other") {
  LmTraining training(small_lm_recipe(), counting());
  const double first = training.judged_loss();
  CHECK(first == doctest::Approx(std::log(12)).epsilon(0.05));
  training.steps(30);
  CHECK(training.trainer.finished());
  const double last = training.judged_loss();
  CHECK(last < 0.8 * first);
  CHECK(training.trainer.evaluate()[0].value == doctest::Approx(last).epsilon(0.1));
  CHECK(training.trainer.best_step() == 30);
  CHECK(end_with_better(training.trainer, training.task) == last);
  CHECK(training.task.sample(40).size() == 40);
  CHECK(training.task.sample(40) == training.task.sample(40));
  CHECK(training.task.sample(20) == training.task.sample(40).substr(0, 20));
}

TEST_CASE("warm-up follows from the steps unless it is given") {
  LmRecipe recipe;
  CHECK(recipe.resolved().warmup == 100);
  recipe.steps = 50;
  CHECK(recipe.resolved().warmup == 2);
  recipe.steps = 1;
  CHECK(recipe.resolved().warmup == 0);
  CHECK(recipe.resolved().rate_of(1) == doctest::Approx(recipe.last_rate));
  recipe.steps = 50;
  recipe.warmup = 10;
  CHECK(recipe.resolved().warmup == 10);
}

TEST_CASE("a training that was interrupted equals to the bit one that was not: N + N = 2 N") {
  LmRecipe recipe = small_lm_recipe();
  recipe.evaluate_every = 4;
  for (const double average : {0.0, 0.9}) {
    CAPTURE(average);
    recipe.average = average;
    LmTraining whole(recipe, counting());
    small::train_until(whole.trainer, 12);
    for (const i64 stop : {0, 3, 4, 6, 11}) {  // before, at and after an estimate
      CAPTURE(stop);
      LmTraining first(recipe, counting()), second(recipe, counting());
      small::train_until(first.trainer, stop);
      second.trainer.load_state(first.trainer.state());
      CHECK(second.trainer.hash() == first.trainer.hash());
      CHECK(second.trainer.best_step() == first.trainer.best_step());
      small::train_until(second.trainer, 12);
      CHECK(second.trainer.hash() == whole.trainer.hash());
      CHECK(second.judged_loss() == whole.judged_loss());
      CHECK(second.trainer.best_score() == whole.trainer.best_score());
      const double end = end_with_better(second.trainer, second.task);
      CHECK(end == second.task.validation_loss());
    }
  }
}

TEST_CASE("blocks come from the shuffled text, or with replacement from anywhere; both go on where they stopped") {
  const std::string shuffled = hash_after(1);
  for (const bool replacement : {false, true}) {
    LmRecipe recipe = small_lm_recipe();
    recipe.replacement = replacement;
    LmTraining whole(recipe, counting()), first(recipe, counting()), second(recipe, counting());
    whole.steps(12);
    CHECK((whole.trainer.hash() == shuffled) == !replacement);
    first.steps(5);
    second.trainer.load_state(first.trainer.state());
    second.trainer.seconds_of_step();
    second.trainer.seconds_of_evaluation();
    second.steps(7);
    CHECK(second.trainer.hash() == whole.trainer.hash());
  }
}

TEST_CASE("a state of another training is refused, and a recipe with which none is possible") {
  LmRecipe recipe = small_lm_recipe(), wider = small_lm_recipe();
  wider.model.layer.d_ff = 38;
  LmTraining training(recipe, counting()), other(wider, counting());
  training.steps(1);
  CHECK_THROWS_AS(other.trainer.load_state(training.trainer.state()), Error);
  TrainingState broken = training.trainer.state();
  broken.steps_done = 2;
  CHECK_THROWS_WITH_AS(LmTraining(recipe, counting()).trainer.load_state(broken),
                       doctest::Contains("not of a training"), Error);
  recipe.warmup = recipe.steps;
  CHECK(small::contains(small::error_of([&] { recipe.validate(); }), "warmup (30)"));
}

TEST_CASE("the same bits for 1, 2, 3, 4 and 8 threads, dropout on") {
  const std::string hash = hash_after(1);
  for (int threads : {2, 3, 4, 8}) CHECK(hash_after(threads) == hash);
}

TEST_CASE("an estimate is timed by one of its batches") {
  LmRecipe one = small_lm_recipe(), hundred = small_lm_recipe();
  one.estimate_batches = 1;
  hundred.estimate_batches = 100;
  LmTraining estimated(one, counting()), timed(hundred, counting());
  estimated.task.evaluate();
  CHECK(timed.task.seconds_of_evaluation() > 0);
  CHECK(timed.task.positions() == estimated.task.positions());
}

TEST_CASE("measuring, estimating and judging change nothing that is trained") {
  LmTraining judged(small_lm_recipe(), counting()), plain(small_lm_recipe(), counting());
  CHECK(judged.trainer.seconds_of_step() > 0);
  CHECK(judged.trainer.seconds_of_evaluation() > 0);
  for (int i = 0; i < 3; ++i) {
    judged.steps(1);
    plain.steps(1);
    judged.trainer.evaluate();
    judged.judged_loss();
  }
  CHECK(judged.trainer.hash() == plain.trainer.hash());
  LmRecipe other = small_lm_recipe();
  other.seed = 2;
  LmTraining different(other, counting());
  different.steps(3);
  CHECK(different.trainer.hash() != plain.trainer.hash());
}

TEST_CASE("a step that meets NaN is not made, and the error names where it began") {
  LmRecipe recipe = small_lm_recipe();
  recipe.average = 0;
  LmTraining training(recipe, counting());
  training.steps(1);
  for (NamedParameter& p : training.task.model.parameters())
    if (p.name == "layers.0.linear1.weight") p.value.mutable_value().write<float>()[4] = NAN;
  const std::string before = training.trainer.hash();
  const std::string error = small::error_of([&] { training.steps(1); });
  CHECK(error.starts_with("lm: step 2 was not made, because a number is not finite; a smaller --rate"));
  CHECK(error.find("\ntrain: the loss is not finite") != std::string::npos);
  CHECK(error.find("layers.0.linear1.weight") != std::string::npos);
  CHECK(training.trainer.hash() == before);
  CHECK(training.trainer.steps_done() == 1);
}

TEST_CASE("weight decay falls on matrices alone") {
  LmRecipe recipe = small_lm_recipe();
  recipe.model.layer.bias = true;
  recipe.rate = recipe.last_rate = 0.1;
  recipe.weight_decay = 5;
  recipe.warmup = 1;
  LmRecipe without = recipe;
  without.weight_decay = 0;
  LmTraining decayed(recipe, counting()), plain(without, counting());
  decayed.steps(1);
  plain.steps(1);
  const Parameters a = decayed.task.model.parameters(), b = plain.task.model.parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].name);
    CHECK(same_bits(a[i].value.value(), b[i].value.value()) == (a[i].value.shape().rank() == 1));
  }
}
