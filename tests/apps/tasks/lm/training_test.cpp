// Chapter 9. Training a small GPT on a small text: its recipe, its blocks, its losses; it learns, and its best model is
// kept.
#include "apps/tasks/lm/training.h"

#include <doctest/doctest.h>
#include <cmath>

#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

// Odd sizes, so that no tile or chunk comes out even.
LmRecipe small_lm_recipe() {
  LmRecipe recipe;
  recipe.model.layer.d_model = 15;
  recipe.model.layer.num_heads = 3;
  recipe.model.layer.d_ff = 37;
  recipe.model.num_layers = 2;
  recipe.model.max_len = 11;
  recipe.model.layer.dropout = 0.1;
  recipe.steps = 30;
  recipe.batch = 5;
  recipe.warmup = 10;
  recipe.rate = 1e-2;
  recipe.last_rate = 1e-3;
  recipe.evaluate_every = 10;
  recipe.estimate_batches = 3;
  return recipe;
}

struct LmTraining {
  LmTraining(const LmRecipe& how, const TextData& data) : recipe(how), task(recipe, data), trainer(task) {}
  void steps(int count) {
    for (int i = 0; i < count; ++i) trainer.step();
  }
  double judged_loss() {
    double loss = 0;
    trainer.with_judged([&] { loss = task.validation_loss(); });
    return loss;
  }
  LmRecipe recipe;
  LmTask task;
  Trainer trainer;
};

TextData counting() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "one two three four ";
  return text_data(text, 11);
}

}  // namespace

TEST_CASE("the default recipe is nanoGPT's for a CPU, except for the order of blocks and the average") {
  const LmRecipe recipe;
  nn::GptConfig expected = nn::gpt_preset("nanogpt");
  expected.vocab_size = recipe.model.vocab_size;
  CHECK(recipe.model == expected);
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

TEST_CASE("blocks come from the shuffled text, or with replacement from anywhere; both go on where they stopped") {
  LmTraining usual(small_lm_recipe(), counting());
  usual.steps(12);
  const std::string shuffled = usual.trainer.hash();
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

namespace {

LmRecipe recipe_without_average() {
  LmRecipe recipe = small_lm_recipe();
  recipe.rate = 3e-2;
  recipe.average = 0;
  return recipe;
}

// Trains until an evaluation, and then to a worse model. Returns the loss of the better one.
double loss_before_it_gets_worse(LmTraining& training) {
  training.steps(15);
  training.trainer.evaluate();
  const double best = training.judged_loss();
  for (NamedParameter& p : training.task.model.parameters()) scale_in_place(p.value.mutable_value(), -1.0);
  training.steps(1);
  CHECK(training.trainer.best_step() == 15);
  REQUIRE(training.judged_loss() > best);
  return best;
}

}  // namespace

TEST_CASE("the best model comes back where the last is worse on the whole validation text") {
  const LmRecipe recipe = recipe_without_average();
  LmTraining training(recipe, counting());
  const double best = loss_before_it_gets_worse(training);
  const TrainingState state = training.trainer.state();
  CHECK(state.tensors.contains("best.wte.weight"));
  LmTraining resumed(recipe, counting());
  resumed.trainer.load_state(state);
  CHECK(end_with_better(training.trainer, training.task) == best);
  CHECK(training.task.validation_loss() == best);
  CHECK(end_with_better(resumed.trainer, resumed.task) == best);
}

TEST_CASE("the last model stays where it is better on the whole validation text than that of the lowest estimate") {
  LmRecipe recipe = small_lm_recipe();
  recipe.average = 0;
  LmTraining training(recipe, counting());
  training.steps(2);
  training.trainer.evaluate();
  training.steps(28);
  const double last = training.judged_loss();
  CHECK(training.trainer.best_step() == 2);
  CHECK(end_with_better(training.trainer, training.task) == last);
  CHECK(training.task.validation_loss() == last);
}

TEST_CASE("the validation loss is the mean over every character that follows another") {
  const TextData data = counting();
  LmTraining training(small_lm_recipe(), data);
  training.steps(5);
  const i64 count = data.validation.count() - 1;
  REQUIRE(count % 11 != 0);  // a shorter block at the end
  double total = 0;
  for (i64 begin = 0; begin < count; begin += 11) {
    const TextBatch block = blocks_from(data.validation, begin, 1, std::min<i64>(11, count - begin), 1);
    nn::Pass pass;
    total += cross_entropy(training.task.model(block.ids, pass), block.labels, {.reduction = Reduction::sum}).item();
  }
  CHECK(training.task.validation_loss() == doctest::Approx(total / static_cast<double>(count)).epsilon(1e-6));
}

TEST_CASE("with a stride, a token is predicted from the model's length less the stride at least, if there is so much") {
  const TextData data = counting();
  LmTraining training(small_lm_recipe(), data);
  training.steps(5);
  const nn::Gpt& model = training.task.model;
  const Text text = data.validation.part(0, 100);
  CHECK(loss_over(model, text, 11) == loss_over(model, text));
  for (const i64 stride : {1, 3, 4, 10, 11}) {
    CAPTURE(stride);
    double total = 0;
    for (i64 predicted = 0; predicted < 99; ++predicted) {  // one token at a time
      const i64 end = std::min<i64>(99, predicted / stride * stride + stride);
      const i64 begin = std::max<i64>(0, predicted / stride * stride + stride - 11);
      REQUIRE((predicted - begin >= 11 - stride || begin == 0));
      const TextBatch block = blocks_from(text, begin, 1, end - begin, 1);
      Tensor label = full(block.labels.shape(), -100, Dtype::i32);
      label.write<i32>()[predicted - begin] = block.labels.at(predicted - begin);
      nn::Pass pass = nn::Pass::inference();
      total += cross_entropy(model(block.ids, pass), label, {.reduction = Reduction::sum}).item();
    }
    CHECK(loss_over(model, text, stride) == doctest::Approx(total / 99).epsilon(1e-6));
  }
  CHECK(loss_over(model, text.part(0, 2), 3) == loss_over(model, text.part(0, 2)));
  std::vector<i64> progress;
  loss_over(model, text, 4, [&](i64 counted) { progress.push_back(counted); });
  CHECK(progress == std::vector<i64>{4, 8, 96, 99});  // two short blocks, 22 of the whole length, a short one
  CHECK(small::contains(small::error_of([&] { loss_over(model, text, 12); }), "the stride must be from 1 to 11"));
  CHECK(small::contains(small::error_of([&] { loss_over(model, text, -1); }), "the stride must be from 1 to 11"));
}

TEST_CASE("a training whose last evaluation fails is not ended, so that its best model can still be taken") {
  LmTraining training(recipe_without_average(), counting());
  const double best = loss_before_it_gets_worse(training);
  FailingAt failing(0);
  {
    const ObserverScope scope(failing);
    CHECK(small::contains(small::error_of([&] { end_with_better(training.trainer, training.task); }), "stop"));
  }
  CHECK_FALSE(training.trainer.ended());
  training.trainer.end_with_best();
  CHECK(training.trainer.ended());
  CHECK(training.task.validation_loss() == best);
}

TEST_CASE("a training whose last steps went wrong ends with its best model") {
  LmRecipe recipe = small_lm_recipe();
  recipe.average = 0;
  LmTraining training(recipe, counting());
  training.steps(3);
  training.trainer.evaluate();
  const double best = training.judged_loss();
  training.steps(1);
  for (NamedParameter p : training.task.model.parameters()) p.value.mutable_value().write<float>()[0] = NAN;
  CHECK(std::isnan(training.judged_loss()));
  CHECK(end_with_better(training.trainer, training.task) == best);
}
