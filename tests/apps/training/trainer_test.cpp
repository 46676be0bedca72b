// Chapter 9. Tests of the trainer: accumulated gradients, averages, the best parameters, patience, resuming; and of a
// watched step, which moves what it should, and explains why where it does not move.
#include "apps/training/trainer.h"

#include <doctest/doctest.h>
#include <cmath>
#include <limits>
#include <new>

#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/sgd.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"

using namespace orrery;
using small::line_recipe;
using small::LineTraining;
using small::train_until;

TEST_CASE("micro-batches of 4 and of 2 tokens make the step of one batch of 6") {
  TrainingRecipe two = line_recipe();
  two.optimizer = OptimizerKind::sgd;
  two.micro_batches = 2;
  TrainingRecipe one = two;
  one.micro_batches = 1;
  LineTraining parts(two), whole(one);
  whole.task.all_at_once = true;
  for (int i = 0; i < 5; ++i)
    CHECK(parts.trainer.step().loss == doctest::Approx(whole.trainer.step().loss).epsilon(1e-12));
  CHECK(parts.task.a.value().item() == doctest::Approx(whole.task.a.value().item()).epsilon(1e-12));
  CHECK(parts.task.b.value().item() == doctest::Approx(whole.task.b.value().item()).epsilon(1e-12));
}

TEST_CASE("a micro-batch without target tokens adds nothing, and a step without any is an error") {
  TrainingRecipe two = line_recipe();
  two.optimizer = OptimizerKind::sgd;
  two.micro_batches = 2;
  TrainingRecipe one = two;
  one.micro_batches = 1;
  LineTraining parts(two), whole(one), none(one);
  parts.task.empty_first = whole.task.all_at_once = none.task.empty_first = true;
  CHECK(parts.trainer.seconds_of_step() > 0);
  for (int i = 0; i < 3; ++i) CHECK(parts.trainer.step().loss == whole.trainer.step().loss);
  CHECK(parts.task.a.value().item() == whole.task.a.value().item());
  CHECK_THROWS_WITH_AS(none.trainer.step(), doctest::Contains("line: step 1 has no points to learn from"), Error);
  parts.task.b.mutable_value().write<double>()[0] = NAN;
  CHECK(small::error_of([&] { parts.trainer.step(); }).starts_with("line: step 4 was not made, because a number"));
  CHECK(parts.trainer.steps_done() == 3);
}

TEST_CASE("a training that was interrupted equals to the bit one that was not, whatever it averages") {
  for (const auto& [average, last] : {std::pair{0.0, 0}, {0.9, 0}, {0.0, 2}}) {
    TrainingRecipe recipe = line_recipe();
    recipe.average = average;
    recipe.average_last = last;
    CAPTURE(recipe.average);
    CAPTURE(recipe.average_last);
    LineTraining whole(recipe);
    train_until(whole.trainer, 12);
    for (const i64 stop : {0, 2, 3, 4, 9, 11}) {  // before, at and after an evaluation
      CAPTURE(stop);
      LineTraining first(recipe), second(recipe);
      train_until(first.trainer, stop);
      second.trainer.load_state(first.trainer.state());
      train_until(second.trainer, 12);
      CHECK(second.trainer.hash() == whole.trainer.hash());
      CHECK(second.trainer.best_score() == whole.trainer.best_score());
      CHECK(second.trainer.best_step() == whole.trainer.best_step());
      second.trainer.end_with_judged();
      LineTraining all(recipe);
      train_until(all.trainer, 12);
      all.trainer.end_with_judged();
      CHECK(second.task.a.value().item() == all.task.a.value().item());
    }
  }
}

TEST_CASE("the mean of the last evaluations is judged, and training goes on from the trained parameters") {
  TrainingRecipe recipe = line_recipe(), plain = line_recipe();
  recipe.average_last = 2;
  LineTraining averaged(recipe), trained(plain);
  std::vector<double> at_evaluations;
  for (i64 step = 1; step <= 9; ++step) {
    CHECK(averaged.trainer.step().loss == trained.trainer.step().loss);
    if (!averaged.trainer.evaluation_is_due()) continue;
    averaged.trainer.evaluate();
    at_evaluations.push_back(averaged.task.a.value().item());
  }
  REQUIRE(at_evaluations.size() == 3);
  averaged.trainer.with_judged([&] {
    CHECK(averaged.task.a.value().item() ==
          doctest::Approx((at_evaluations[1] + at_evaluations[2]) / 2).epsilon(1e-14));
  });
  CHECK(averaged.task.a.value().item() == trained.task.a.value().item());
}

TEST_CASE("parameters put into the model for a while are taken out again, also after an exception") {
  TrainingRecipe recipe = line_recipe();
  recipe.average = 0.5;
  LineTraining training(recipe);
  double mean = 0, weight = 0;
  while (training.trainer.steps_done() < 4) {
    training.trainer.step();
    mean = 0.5 * mean + 0.5 * training.task.a.value().item();
    weight = 0.5 * weight + 0.5;
  }
  const double trained = training.task.a.value().item();
  CHECK_THROWS_AS(training.trainer.with_judged([&] {
    CHECK(training.task.a.value().item() == doctest::Approx(mean / weight).epsilon(1e-12));
    fail("test", "stop");
  }),
                  Error);
  CHECK(training.task.a.value().item() == trained);
}

TEST_CASE("the parameters of the lowest evaluation come back") {
  TrainingRecipe recipe = line_recipe();
  LineTraining training(recipe);
  training.task.validation = {0.5, 0.2, 0.3, 0.4};
  train_until(training.trainer, 6);
  const double best = training.task.a.value().item();
  train_until(training.trainer, 12);
  CHECK(training.trainer.best_step() == 6);
  CHECK(training.trainer.best_score() == 0.2);
  CHECK(training.task.a.value().item() != best);
  training.trainer.with_best([&] { CHECK(training.task.a.value().item() == best); });
  training.trainer.end_with_best();
  CHECK(training.task.a.value().item() == best);
}

TEST_CASE("buffers are in the state of a training, and in its best model, but not in its averages") {
  for (const double average : {0.0, 0.9}) {
    TrainingRecipe recipe = line_recipe();
    recipe.average = average;
    const auto prepare = [](LineTraining& training) {
      training.task.mean = full({2}, 0.0);
      training.task.counts = arange(3);
      training.task.table = full({1}, 7.0);
      training.task.validation = {0.5, 0.25, 0.75, 0.75};  // the best is at step 6
    };
    // Buffers that change from step to step: one in place, one is made anew.
    const auto go_on = [](LineTraining& training, i64 steps) {
      while (training.trainer.steps_done() < steps) {
        training.trainer.step();
        add_in_place(training.task.mean, full({2}, 1.0));
        training.task.counts = full({3}, static_cast<double>(training.trainer.steps_done()), Dtype::i32);
        if (training.trainer.evaluation_is_due()) training.trainer.evaluate();
      }
    };
    LineTraining whole(recipe), first(recipe), second(recipe), other(recipe);
    for (LineTraining* training : {&whole, &first, &second}) prepare(*training);
    go_on(whole, 12);
    go_on(first, 8);
    const TrainingState state = first.trainer.state();
    CHECK(state.tensors.at("buffer.counts").dtype() == Dtype::i32);
    CHECK(state.tensors.at("best.mean").at(0) == 6);
    CHECK_FALSE(state.tensors.contains("buffer.table"));
    CHECK_FALSE(state.tensors.contains("average.mean"));
    second.trainer.load_state(state);
    second.task.evaluations = 2;
    go_on(second, 12);
    CHECK(second.trainer.hash() == whole.trainer.hash());
    second.trainer.with_best([&] { CHECK(second.task.counts.at(0) == 6); });
    CHECK(second.task.mean.at(0) == 12);
    CHECK(second.task.counts.at(0) == 12);
    second.trainer.end_with_best();
    CHECK(second.task.mean.at(0) == 6);
    CHECK(second.task.counts.at(0) == 6);
    const std::string hash = whole.trainer.hash();
    add_in_place(whole.task.mean, full({2}, 1.0));
    CHECK(whole.trainer.hash() != hash);
    prepare(other);
    other.task.mean = full({3}, 0.0);
    CHECK_THROWS_WITH_AS(other.trainer.load_state(state), doctest::Contains("has no buffer.mean"), Error);
  }
}

namespace {

// Whether a training of so many steps has diverged with these losses.
bool diverges(const std::vector<double>& losses, double guessing, i64 steps = 100) {
  TrainingRecipe recipe = line_recipe();
  recipe.steps = steps;
  LineTraining training(recipe);
  training.task.guessing = guessing;
  TrainingState state = training.trainer.state();
  state.steps_done = static_cast<i64>(losses.size());
  state.tensors["losses"] = Tensor::of<double>({state.steps_done}, losses);
  training.trainer.load_state(state);
  return training.trainer.has_diverged();
}

}  // namespace

TEST_CASE("a training has diverged when most of its last losses are far above the first and above guessing") {
  const auto after = [](double first, size_t low, double low_loss, size_t high, double loss) {
    std::vector<double> losses{first};
    losses.insert(losses.end(), low, low_loss);
    losses.insert(losses.end(), high, loss);
    return losses;
  };
  CHECK_FALSE(diverges({}, 2));
  CHECK(diverges(after(3, 20, 2, 16, 6.1), 2));
  CHECK_FALSE(diverges(after(3, 20, 2, 16, 5.9), 2));
  CHECK_FALSE(diverges(after(3, 20, 2, 15, 1e9), 2));  // half of the last 30 steps
  CHECK(diverges(after(3, 0, 0, 16, 1e9), 2));
  CHECK(diverges(after(0.1, 20, 0.1, 16, 4.1), 2));  // a model that is trained further is held to guessing
  CHECK_FALSE(diverges(after(0.1, 20, 0.1, 60, 3.9), 2));
  CHECK_FALSE(diverges(after(3, 20, 2, 30, 1e9), std::numeric_limits<double>::infinity()));  // no guess is known
  // A first rate ten times too large: the toy with norms first, Adam at 0.06. Then it learns.
  CHECK_FALSE(diverges({4.6, 72.4, 83.9, 35.1, 15.6, 14.6, 10.3, 7.0, 5.9, 4.4, 3.6, 3.4, 3.1, 3.1, 2.9, 2.9}, 2.8));
  CHECK_FALSE(diverges(after(3, 29, 1e9, 1, 5), 2));  // the last step is within the bound
}

TEST_CASE("a training that ends after a few steps has diverged when most of all its losses are beyond the bound") {
  CHECK_FALSE(diverges({1e9}, 2, 1));
  CHECK_FALSE(diverges({3, 1e9}, 2, 2));  // half of them
  CHECK(diverges({3, 7, 1e9}, 2, 3));
  CHECK_FALSE(diverges({3, 7, 1e9}, 2, 4));  // one is left
  CHECK_FALSE(diverges({3, 5.9, 5.9}, 2, 3));
  CHECK_FALSE(diverges({4.6, 72.4, 83.9, 35.1, 15.6, 7.0}, 2, 6));  // comes back
}

TEST_CASE("patience ends after as many evaluations without a better score, NaN among them") {
  TrainingRecipe recipe = line_recipe();
  recipe.patience = 2;
  LineTraining training(recipe);
  training.task.validation = {0.5, 0.6, NAN, 0.1};
  train_until(training.trainer, 6);
  CHECK_FALSE(training.trainer.out_of_patience());
  CHECK_FALSE(training.trainer.finished());
  LineTraining resumed(recipe);
  resumed.task.validation = training.task.validation;
  resumed.task.evaluations = 2;
  resumed.trainer.load_state(training.trainer.state());
  for (LineTraining* each : {&training, &resumed}) {
    train_until(each->trainer, 9);
    CHECK(each->trainer.out_of_patience());
    CHECK(each->trainer.finished());
    CHECK(each->trainer.best_step() == 3);
  }
}

TEST_CASE("measuring changes nothing") {
  LineTraining measured(line_recipe()), plain(line_recipe());
  CHECK(measured.trainer.seconds_of_step() > 0);
  CHECK(measured.trainer.seconds_of_evaluation() >= 0);
  measured.task.claimed_seconds = 0.25;
  CHECK(measured.trainer.expected_seconds(10) == 121);  // twelve steps and four evaluations
  CHECK(measured.trainer.evaluations_left() == 4);
  train_until(measured.trainer, 5);
  train_until(plain.trainer, 5);
  CHECK(measured.trainer.evaluations_left() == 3);
  CHECK(measured.trainer.hash() == plain.trainer.hash());
}

TEST_CASE("a state of another recipe or model is refused") {
  LineTraining training(line_recipe());
  train_until(training.trainer, 4);
  TrainingState state = training.trainer.state();
  state.steps_done = 3;
  LineTraining other(line_recipe());
  CHECK_THROWS_WITH_AS(other.trainer.load_state(state), doctest::Contains("is not of a training of 12 steps"), Error);
  TrainingRecipe shorter = line_recipe();
  shorter.steps = 3;
  LineTraining small(shorter);
  CHECK_THROWS_AS(small.trainer.load_state(training.trainer.state()), Error);
  state = training.trainer.state();
  state.tensors.erase("parameter.b");
  CHECK_THROWS_WITH_AS(other.trainer.load_state(state), doctest::Contains("has no parameter.b"), Error);
}

TEST_CASE("of a score that is better when it is higher, the highest is the best, and patience waits for it") {
  TrainingRecipe recipe = line_recipe();
  recipe.patience = 2;
  LineTraining training(recipe);
  training.task.better = Better::higher;
  training.task.validation = {-NAN, -2, 0.7, 0.3, 0.6};
  while (training.trainer.steps_done() < 6) {
    training.trainer.step();
    if (training.trainer.evaluation_is_due()) training.trainer.evaluate();
  }
  CHECK(training.trainer.best_step() == 6);
  CHECK(training.trainer.best_score() == -2);
  training.task.validation = {0, 0, 0.7, 0.3};
  LineTraining resumed(recipe);
  resumed.task.better = Better::higher;
  resumed.task.validation = {0.7, 0.3};
  resumed.trainer.load_state(training.trainer.state());
  for (LineTraining* each : {&training, &resumed}) {
    train_until(each->trainer, 12);
    CHECK(each->trainer.best_step() == 9);
    CHECK(each->trainer.best_score() == 0.7);
  }
  recipe.steps = 30;
  LineTraining patient(recipe);
  patient.task.better = Better::higher;
  patient.task.validation = {0.5, 0.6, 0.5, 0.4};
  while (!patient.trainer.finished()) {
    patient.trainer.step();
    if (patient.trainer.evaluation_is_due()) patient.trainer.evaluate();
  }
  CHECK(patient.trainer.steps_done() == 12);
}

TEST_CASE("a task whose loss needs the whole batch takes no micro-batches, and Noam's schedule needs a width") {
  TrainingRecipe recipe = line_recipe();
  recipe.micro_batches = 2;
  small::Line line(recipe);
  line.whole_batch = true;
  CHECK(small::error_of([&] { Trainer trainer(line); }) ==
        "line: the loss compares all items of a batch, so a step is one batch: --micro-batches must be 1, not 2");
  line.recipe().micro_batches = 1;
  CHECK(small::error_of([&] { Trainer trainer(line); }) == "");
  line.recipe().schedule = Schedule::noam;
  line.recipe().warmup = 5;
  CHECK(small::error_of([&] { Trainer trainer(line); }) ==
        "line: Noam's schedule needs the model's width in the recipe");
  line.recipe().width = 4;
  CHECK(small::error_of([&] { Trainer trainer(line); }) == "");
}

namespace {

// L = sum(exp(x)) with x = (0, 1), after its backward.
struct WatchedSum {
  Variable x = parameter(Tensor::of<float>({2}, {0, 1}), "x");
  optim::SGD sgd{Parameters{{"x", x}}};
  TrainingStep step{.program = "test", .number = 7, .rate = 0.5};
  double begun_with = 0;

  Variable loss() const { return sum(exp(x)); }
  void pass() {
    const Variable now = loss();
    backward(now);
    begun_with = now.item();
  }
  std::string error() {
    return small::error_of([&] { make_step(step, begun_with, sgd, [&] { return loss(); }); });
  }
};

// Makes what exp adds to its input's gradient infinite.
struct InfiniteExp final : Observer {
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t, Tensor& g) override {
    if (node.name == "exp") g.write<float>()[0] = INFINITY;
  }
};

}  // namespace

TEST_CASE("a watched step is the optimiser's, clipped or not") {
  WatchedSum free, clipped;
  free.pass();
  clipped.pass();
  clipped.step.clip = 0.1;
  CHECK(free.error() == "");
  CHECK(clipped.error() == "");
  CHECK(free.x.value().at(0) == doctest::Approx(-0.5));  // dL/dx = e^x = (1, e), the rate is 0.5
  CHECK(free.x.value().at(1) == doctest::Approx(1 - 0.5 * std::exp(1)));
  const double moved = std::hypot(clipped.x.value().at(0), clipped.x.value().at(1) - 1);
  CHECK(moved == doctest::Approx(0.5 * 0.1).epsilon(1e-5));
}

TEST_CASE("a loss that is not finite moves nothing, and the operation that made it is named") {
  for (const double clip : {0.0, 1.0}) {
    WatchedSum watched;
    watched.step.clip = clip;
    watched.x.mutable_value().write<float>()[1] = 1000;
    watched.pass();
    const std::string error = watched.error();
    CHECK(error.starts_with(
        "test: step 7 was not made, because a number is not finite; a smaller --rate or a longer --warmup "
        "may help\n"
        "train: the loss is not finite, so the optimiser's step must not be made\n"
        "exp (operation 1 of forward) gave infinity from finite inputs\n"));
    CHECK(watched.x.value().at(0) == 0);
    CHECK_FALSE(watched.x.gradient().defined());
  }
}

TEST_CASE("a gradient that is not finite moves nothing, and the operation that made it is named") {
  for (const double clip : {0.0, 1.0}) {
    WatchedSum watched;
    watched.step.clip = clip;
    InfiniteExp mistake;
    const ObserverScope scope(mistake);
    watched.pass();
    const std::string error = watched.error();
    CHECK(error.find("\ntrain: the gradient of parameter x is not finite") != std::string::npos);
    CHECK(error.find("\nexp (operation 2 of backward) gave infinity as gradient of its input 0") != std::string::npos);
    CHECK(watched.x.value().at(0) == 0);
    CHECK_FALSE(watched.x.gradient().defined());
  }
}

TEST_CASE("a loss that is not finite is reported even if no memory is left to name the operation") {
  WatchedSum watched;
  watched.pass();
  const auto no_memory = []() -> Variable { throw std::bad_alloc(); };
  CHECK(small::error_of([&] { make_step(watched.step, NAN, watched.sgd, no_memory); }) ==
        "test: step 7 was not made, because a number is not finite; a smaller --rate or a longer --warmup may help\n"
        "there is not enough memory to run the step once more and name the operation");
  CHECK(watched.x.value().at(0) == 0);
  CHECK_FALSE(watched.x.gradient().defined());
}

TEST_CASE("another mistake keeps its own words") {
  WatchedSum watched;
  watched.pass();
  watched.step.rate = -1;
  CHECK(watched.error() == "optimizer: the learning rate must be 0 or more and finite, got -1");
  CHECK(watched.x.value().at(0) == 0);
}
