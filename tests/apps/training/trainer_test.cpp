// Chapter 9. Tests of the trainer: accumulated gradients, averages, the best parameters, patience, and resuming.
#include "apps/training/trainer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// A line a x + b through points, of which each micro-batch has as many as it likes: L = the mean squared distance.
class Line final : public Task {
 public:
  std::string program() const override { return "line"; }
  Parameters parameters() override { return {{"a", a}, {"b", b}}; }
  std::vector<i64> draw(i64, i64 micro_batches) override {
    points_.clear();
    std::vector<i64> counts;
    for (i64 i = 0; i < micro_batches; ++i) {
      const i64 count = all_at_once ? 6 : i == 0 ? 4 : 2;
      points_.push_back(rand_uniform({count}, -1, 1, numbers_, f64));
      counts.push_back(count);
    }
    return counts;
  }
  i64 tokens_read() const override { return 6; }
  Variable loss(i64 micro_batch, nn::Pass&) override {
    const Tensor& x = points_[static_cast<size_t>(micro_batch)];
    const Variable distance = sub(add(mul(constant(x), a), b), constant(x * 3.0) + 2.0);
    return scale(sum(mul(distance, distance)), 1.0 / static_cast<double>(x.count()));
  }
  double evaluate() override {
    ++evaluations;
    if (!validation.empty()) return validation[static_cast<size_t>(evaluations - 1)];
    return std::pow(a.value().item() - 3, 2) + std::pow(b.value().item() - 2, 2);
  }
  std::vector<u64> positions() const override { return {numbers_.position()}; }
  void go_to(const std::vector<u64>& positions) override { numbers_ = Rng(5, positions.at(0)); }

  Variable a = parameter(full({}, 0.5, f64), "a"), b = parameter(full({}, -1.0, f64), "b");
  bool all_at_once = false;
  std::vector<double> validation;  // instead of the true distance
  int evaluations = 0;

 private:
  Rng numbers_{5};
  std::vector<Tensor> points_;
};

TrainingRecipe line_recipe() {
  TrainingRecipe recipe{.steps = 12};
  recipe.optimizer = OptimizerKind::adam, recipe.schedule = Schedule::constant, recipe.rate = 0.05, recipe.warmup = 0;
  recipe.evaluate_every = 3;
  return recipe;
}

void train(Trainer& trainer, i64 until) {
  while (trainer.steps_done() < until) {
    trainer.step();
    if (trainer.evaluation_is_due()) trainer.evaluate();
  }
}

struct LineTraining {
  explicit LineTraining(const TrainingRecipe& recipe) : trainer(task, recipe, 1) {}
  Line task;
  Trainer trainer;
};

}  // namespace

TEST_CASE("micro-batches of 4 and of 2 tokens make the step of one batch of 6") {
  TrainingRecipe two = line_recipe();
  two.optimizer = OptimizerKind::sgd, two.micro_batches = 2;
  TrainingRecipe one = two;
  one.micro_batches = 1;
  LineTraining parts(two), whole(one);
  whole.task.all_at_once = true;
  for (int i = 0; i < 5; ++i)
    CHECK(parts.trainer.step().loss == doctest::Approx(whole.trainer.step().loss).epsilon(1e-12));
  CHECK(parts.task.a.value().item() == doctest::Approx(whole.task.a.value().item()).epsilon(1e-12));
  CHECK(parts.task.b.value().item() == doctest::Approx(whole.task.b.value().item()).epsilon(1e-12));
}

TEST_CASE("a training that was interrupted equals to the bit one that was not, whatever it averages") {
  for (const auto& [average, last] : {std::pair{0.0, 0}, {0.9, 0}, {0.0, 2}}) {
    CAPTURE(average);
    CAPTURE(last);
    TrainingRecipe recipe = line_recipe();
    recipe.average = average, recipe.average_last = last;
    LineTraining whole(recipe);
    train(whole.trainer, 12);
    for (const i64 stop : {0, 2, 3, 4, 9, 11}) {  // before, at and after an evaluation
      CAPTURE(stop);
      LineTraining first(recipe), second(recipe);
      train(first.trainer, stop);
      second.trainer.load_state(first.trainer.state());
      train(second.trainer, 12);
      CHECK(second.trainer.hash() == whole.trainer.hash());
      CHECK(second.trainer.best_loss() == whole.trainer.best_loss());
      CHECK(second.trainer.best_step() == whole.trainer.best_step());
      second.trainer.end_with_judged();
      LineTraining all(recipe);
      train(all.trainer, 12);
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

TEST_CASE("what is put into the model for a while goes again, also after an exception") {
  TrainingRecipe recipe = line_recipe();
  recipe.average = 0.5;
  LineTraining training(recipe);
  train(training.trainer, 4);
  const double trained = training.task.a.value().item();
  CHECK_THROWS_AS(training.trainer.with_judged([&] {
    CHECK(training.task.a.value().item() != trained);
    fail("test", "stop");
  }),
                  Error);
  CHECK(training.task.a.value().item() == trained);
}

TEST_CASE("the parameters of the lowest evaluation come back") {
  TrainingRecipe recipe = line_recipe();
  LineTraining training(recipe);
  training.task.validation = {0.5, 0.2, 0.3, 0.4};
  train(training.trainer, 6);
  const double best = training.task.a.value().item();
  train(training.trainer, 12);
  CHECK(training.trainer.best_step() == 6);
  CHECK(training.trainer.best_loss() == 0.2);
  CHECK(training.task.a.value().item() != best);
  training.trainer.with_best([&] { CHECK(training.task.a.value().item() == best); });
  training.trainer.end_with_best();
  CHECK(training.task.a.value().item() == best);
}

TEST_CASE("patience ends after as many evaluations without a lowest loss, NaN among them") {
  TrainingRecipe recipe = line_recipe();
  recipe.patience = 2;
  LineTraining training(recipe);
  training.task.validation = {0.5, 0.6, NAN, 0.1};
  train(training.trainer, 6);
  CHECK_FALSE(training.trainer.out_of_patience());
  LineTraining resumed(recipe);
  resumed.task.validation = training.task.validation, resumed.task.evaluations = 2;
  resumed.trainer.load_state(training.trainer.state());
  for (LineTraining* each : {&training, &resumed}) {
    train(each->trainer, 9);
    CHECK(each->trainer.out_of_patience());
    CHECK(each->trainer.best_step() == 3);
  }
}

TEST_CASE("measuring changes nothing") {
  LineTraining measured(line_recipe()), plain(line_recipe());
  CHECK(measured.trainer.seconds_of_step() > 0);
  CHECK(measured.trainer.seconds_of_evaluation() >= 0);
  train(measured.trainer, 5), train(plain.trainer, 5);
  CHECK(measured.trainer.hash() == plain.trainer.hash());
}

TEST_CASE("a state of another recipe or model is refused") {
  LineTraining training(line_recipe());
  train(training.trainer, 4);
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

TEST_CASE("a recipe goes through JSON unchanged, and impossible ones are refused") {
  TrainingRecipe recipe = line_recipe();
  recipe.rate = 1.0 / 3, recipe.optimizer = OptimizerKind::adamw, recipe.schedule = Schedule::inverse_sqrt;
  recipe.warmup = 3;
  const TrainingRecipe read = training_recipe(to_json(recipe));
  CHECK(read.rate == recipe.rate);
  CHECK(to_json(read) == to_json(recipe));
  const auto error_of = [](const std::string& json) { return small::error_of([&] { training_recipe(json); }); };
  CHECK(small::contains(error_of(R"({"steps": 0})"), "steps must be positive"));
  CHECK(small::contains(error_of(R"({"schedule": "sine"})"), "schedule cannot be"));
  CHECK(small::contains(error_of(R"({"schedule": "cosine", "steps": 5, "warmup": 5})"), "warmup (5)"));
  CHECK(small::contains(error_of(R"({"patience": 2})"), "need evaluate_every"));
  CHECK(small::contains(error_of(R"({"average": 0.9, "average_last": 2, "evaluate_every": 1})"), "exclude each other"));
}
