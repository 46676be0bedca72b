// Chapter 9. What the tests of the trainer train: a line, of two parameters, in microseconds.
#pragma once

#include <cmath>

#include "apps/training/trainer.h"
#include "autograd/ops.h"
#include "core/random.h"
#include "core/tensor_ops.h"
#include "tests/apps/training/train_until.h"

namespace orrery::small {

// A line a x + b through points; micro-batches have different numbers of them. L = the mean squared distance.
class Line final : public Task, public nn::Module {
 public:
  explicit Line(const TrainingRecipe& recipe) : recipe_(recipe) {}
  std::string program() const override { return "line"; }
  nn::Module& module() override { return *this; }
  TrainingRecipe& recipe() override { return recipe_; }
  std::string unit() const override { return "points"; }
  bool needs_whole_batch() const override { return whole_batch; }
  void visit(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
    v("mean", mean);
    v("counts", counts);
    v.derived("table", table);
  }
  double loss_of_guessing() const override { return guessing; }
  std::vector<Items> draw(i64, i64 micro_batches) override {
    points_.clear();
    std::vector<Items> counts;
    for (i64 i = 0; i < micro_batches; ++i) {
      const i64 count = points_in(i);
      points_.push_back(rand_uniform({count}, -1, 1, numbers_, f64));
      counts.push_back({count});
    }
    return counts;
  }
  BatchLoss loss(i64 micro_batch, nn::Pass&) override {
    const Tensor& x = points_[static_cast<size_t>(micro_batch)];
    const Variable distance = sub(add(mul(constant(x), a), b), constant(x * 3.0) + 2.0);
    return {scale(sum(mul(distance, distance)), 1.0 / static_cast<double>(x.count()))};
  }
  std::vector<Score> evaluate() override {
    ++evaluations;
    const double distance = std::pow(a.value().item() - 3, 2) + std::pow(b.value().item() - 2, 2);
    const double judged = validation.empty() ? distance : validation[static_cast<size_t>(evaluations - 1)];
    std::vector<Score> scores{{score_name, judged, better}};
    if (!second_score.empty()) scores.push_back({second_score, 0.125});
    return scores;
  }
  double seconds_of_evaluation() override {
    return claimed_seconds > 0 ? claimed_seconds : Task::seconds_of_evaluation();
  }
  std::vector<u64> positions() const override { return {numbers_.position()}; }
  void go_to(const std::vector<u64>& positions) override { numbers_ = Rng(5, positions.at(0)); }

  Variable a = parameter(full({}, 0.5, f64), "a"), b = parameter(full({}, -1.0, f64), "b");
  Tensor mean, counts, table;  // buffers, if defined
  double guessing = std::numeric_limits<double>::infinity();
  bool all_at_once = false;        // six points in one micro-batch; otherwise four, then two
  bool empty_first = false;        // no point, then six
  std::vector<double> validation;  // instead of the true distance
  std::string score_name = "validation loss", second_score;
  Better better = Better::lower;
  bool whole_batch = false;  // the loss is said to need all points of a step
  int evaluations = 0;
  double claimed_seconds = 0;  // of an evaluation, instead of those that it takes

 private:
  TrainingRecipe recipe_;
  i64 points_in(i64 micro_batch) const {
    if (all_at_once) return 6;
    if (empty_first) return 6 * micro_batch;
    return micro_batch == 0 ? 4 : 2;
  }

  Rng numbers_{5};
  std::vector<Tensor> points_;
};

inline TrainingRecipe line_recipe() {
  TrainingRecipe recipe{.steps = 12};
  recipe.optimizer = OptimizerKind::adam;
  recipe.schedule = Schedule::constant;
  recipe.rate = 0.05;
  recipe.warmup = 0;
  recipe.evaluate_every = 3;
  return recipe;
}

struct LineTraining {
  explicit LineTraining(const TrainingRecipe& recipe) : task(recipe), trainer(task) {}
  Line task;
  Trainer trainer;
};

}  // namespace orrery::small
