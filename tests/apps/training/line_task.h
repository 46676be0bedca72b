// Chapter 9. What the tests of the trainer train: a line, of two parameters, in microseconds; with files, log and
// messages too, as a program trains its model.
#pragma once

#include <cmath>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

#include "apps/training/run.h"
#include "autograd/ops.h"
#include "core/files/safetensors.h"
#include "core/random.h"
#include "core/tensor_ops.h"

namespace orrery::small {

/// Goes on until `steps` steps are done since the beginning.
inline void train_until(Trainer& trainer, i64 steps) {
  while (trainer.steps_done() < steps) {
    trainer.step();
    if (trainer.evaluation_is_due()) trainer.evaluate();
  }
}

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

/// Trains a line to its end, as a program does; `heard` is what it wrote to stderr.
struct LineRun {
  explicit LineRun(const std::string& path, const TrainingRecipe& recipe = line_recipe())
      : training(recipe), files("line", path) {}
  void go(const RunHooks& hooks = {}, const std::string& log_path = "",
          TrainingLog::Earlier earlier = TrainingLog::Earlier::kept) {
    listen([&] {
      TrainingLog log(log_path, earlier);
      const Interrupt interrupt;
      ending = run_steps(training.trainer, files, parts, log, interrupt, hooks);
    });
  }
  void save(bool failed = false) {
    TrainingLog none("", TrainingLog::Earlier::kept);
    listen([&] { save_model(training.trainer, files, parts, none, "orrery line", failed); });
  }
  // Runs f, whose stderr goes to `heard`.
  void listen(const std::function<void()>& f) {
    std::ostringstream text;
    struct RestoredStderr {  // also if f throws what is no Error
      std::streambuf* before;
      ~RestoredStderr() { std::cerr.rdbuf(before); }
    };
    const RestoredStderr restored{std::cerr.rdbuf(text.rdbuf())};
    try {
      f();
    } catch (const Error& error) { problem = error.what(); }
    heard += text.str();
  }
  double a() const { return training.task.a.value().item(); }
  double saved_a() const { return read_safetensors(files.model()).tensors.at("a").item(); }

  LineTraining training;
  TrainingFiles files;
  SavedParts parts{.save_model =
                       [this](const std::string& path) {
                         write_safetensors(path, {{"a", training.task.a.value()}, {"b", training.task.b.value()}});
                       },
                   .origin = {}};
  Ending ending = Ending::finished;
  std::string heard, problem;
};

}  // namespace orrery::small
