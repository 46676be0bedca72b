// Chapter 9. Tests of how a small GPT is judged: its loss over a text, and which of its models is kept.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "apps/tasks/lm/training.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/apps/tasks/lm/small_lm.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using small::counting;
using small::LmTraining;
using small::small_lm_recipe;

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

TEST_CASE("the averaged model is sum_i beta^(t - i) theta_i (1 - beta) / (1 - beta^t), and moves no training") {
  LmRecipe recipe = small_lm_recipe(), plain = small_lm_recipe();
  recipe.average = 0.75;
  plain.average = 0;
  LmTraining averaged(recipe, counting()), trained(plain, counting());
  std::map<std::string, Tensor> sums;
  double weights = 0;
  for (int t = 1; t <= 9; ++t) {
    CHECK(averaged.trainer.step().loss == trained.trainer.step().loss);
    averaged.trainer.evaluate();
    weights = 0.75 * weights + 0.25;
    for (const NamedParameter& p : trained.task.model.parameters()) {
      const Tensor theta = p.value.value().to(f64) * 0.25;
      sums[p.name] = t == 1 ? theta : sums[p.name] * 0.75 + theta;
    }
  }
  CHECK(weights == doctest::Approx(1 - std::pow(0.75, 9)));
  CHECK(averaged.trainer.hash() == trained.trainer.hash());
  CHECK(averaged.judged_loss() != trained.judged_loss());
  averaged.trainer.end_with_judged();
  for (const NamedParameter& p : averaged.task.model.parameters())
    CHECK(std::sqrt(sum_of_squares(p.value.value().to(f64) - sums[p.name] * (1 / weights))) < 1e-6);
  CHECK(averaged.judged_loss() == averaged.task.validation_loss());
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
