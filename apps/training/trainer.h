// Chapter 9. The trainer: makes steps, evaluates, keeps the best and the average, and can be stopped and resumed.
//
//   Trainer trainer(task);  // as task.recipe() says
//   while (!trainer.finished()) {
//     trainer.step();
//     if (trainer.evaluation_is_due()) trainer.evaluate();
//   }
// The parameters that are evaluated and saved are the "judged" ones: an average of the trained ones if the recipe asks
// for one, or else the trained ones themselves.
//   exponential mean   of every step, with its bias corrected as Adam's: Kingma and Ba (2015), section 7.2
//   mean of the last   the parameters at the last k evaluations: Vaswani et al. (2017), section 6.1, "averaging the
//                      last 5 checkpoints"
// The loop that a program runs, with its progress line and its files, is apps/training/run.h.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "apps/training/ranks.h"
#include "apps/training/task.h"
#include "core/files/safetensors.h"
#include "optim/average.h"

namespace orrery {

/// What one step did.
struct StepResult {
  double loss = 0;                   ///< per counted item
  std::optional<double> accuracy{};  ///< share of the counted items whose answer had the highest score
  double rate = 0;
  i64 items = 0;  ///< read
};

/// Everything that the further steps of a training depend on, except recipe, model and data.
struct TrainingState {
  i64 steps_done = 0;
  i64 best_step = 0;  ///< the step of the best evaluation; 0 before the first
  double best_score = std::numeric_limits<double>::infinity();
  i64 evaluations_since_best = 0;
  std::vector<u64> positions;  ///< of the task
  /// With names as in the model's files: "parameter.NAME"; "average.NAME" of the exponential mean; "kept.I.NAME" of
  /// earlier evaluations; "buffer.NAME"; the best parameters and buffers as "best.NAME" if the best step is an earlier
  /// one; the optimiser's state; and "losses", f64 [steps_done].
  TensorMap tensors;
};

/// A step of any training: calls optimizer.step(rate, clip), after the caller's backward from `loss`. The norm of the
/// gradients, which clipping needs anyway, is finite only if every gradient is. Error of `program`: the loss or a
/// gradient is not finite. Then no parameter changes, the gradients are discarded, and the message names the first such
/// number of the pass, for which `loss_of` computes the loss once more, with the same bits, under an observer
/// (autograd/check/first_nan.h). `orrery bench promises` measures what this costs.
struct TrainingStep {
  std::string program;  ///< "toy": errors begin with it
  i64 number = 0;       ///< counted from 1
  double rate = 0;      ///< the learning rate
  double clip = 0;      ///< largest norm of the gradient; 0 does not clip
};
void make_step(const TrainingStep& step, double loss, optim::Optimizer& optimizer,
               const std::function<Variable()>& loss_of);

class Trainer {
 public:
  /// Trains as `task.recipe()` says, together with the other ranks, each of which has the same task. Task and ranks
  /// must outlive the trainer. Errors: those of `TrainingRecipe::validate`; Noam's schedule without the model's width;
  /// micro-batches of a task whose loss needs the whole batch; fewer micro-batches than ranks; on several ranks, a
  /// model with buffers that training changes.
  explicit Trainer(Task& task, Ranks& ranks = Ranks::alone());

  /// One update. Error, before any parameter changes: the loss or a gradient is not finite; the message names the first
  /// operation with such a result. After this error, or if memory runs out, the trainer is as it was before the step,
  /// which can be tried again.
  StepResult step();
  i64 steps_done() const { return steps_done_; }
  Task& task() const { return task_; }
  Ranks& ranks() const { return ranks_; }
  const TrainingRecipe& recipe() const { return recipe_; }
  i64 parameter_count() const;
  /// The losses of all steps.
  const std::vector<double>& losses() const { return losses_; }
  /// Whether the loss has left all bounds: in the last step and in more than half of the last 30 it was more than twice
  /// as large as in the first step, and as that of guessing (Task::loss_of_guessing). A training that ends with fewer
  /// steps is judged by all of them.
  ///
  /// A training that learns does not come here. It begins near the loss of guessing, and what it learns is below. A
  /// strange batch is one step of 30. A rate that is too large at first throws the loss higher, even twentyfold, but a
  /// model that recovers from this needs less than ten steps: smaller scores are enough. In trainings that ended well,
  /// the median of 30 steps stayed below 0.9 times the first loss; in those that did not recover, it reached at least
  /// 3.3 times. A model that is trained further begins far below guessing, and may forget all before it learns again.
  bool has_diverged() const;

  /// Whether the last step is one after which the recipe evaluates.
  bool evaluation_is_due() const;
  /// The scores of the judged parameters. The parameters with the best first score so far are kept. If this fails, the
  /// trainer is as it was before.
  std::vector<Score> evaluate();
  i64 best_step() const { return best_step_; }
  double best_score() const { return best_score_; }
  /// Whether as many evaluations as the recipe's patience have passed without a better score.
  bool out_of_patience() const;
  /// Whether no step is left to make: all are made, or the recipe's patience has ended.
  bool finished() const { return steps_done_ >= recipe_.steps || out_of_patience(); }
  /// Calls f with the judged parameters in the model, then puts the trained ones back.
  void with_judged(const std::function<void()>& f);
  /// Calls f with the best parameters in the model; with the judged ones before the first evaluation.
  void with_best(const std::function<void()>& f);
  /// Ends the training: the model keeps the judged parameters, or the best ones. No step may follow. If the training
  /// has diverged, both keep the best.
  void end_with_judged();
  void end_with_best();
  /// Whether one of these two has given the model its parameters. If memory ran out before, it still has the trained
  /// ones.
  bool ended() const { return ended_; }

  /// Seconds of one step of average size, and of one evaluation, by a trial that changes nothing; with ranks, of the
  /// first one, which computes its part of the step.
  double seconds_of_step();
  double seconds_of_evaluation();
  /// Seconds of the steps and evaluations that are left.
  double expected_seconds(double seconds_of_step);
  /// The evaluations that are left: one after each multiple of `evaluate_every` steps, and one after the last step.
  i64 evaluations_left() const;

  /// Changes the recipe's steps and cooldown, as if they had been given so from the start. Errors: a schedule that is
  /// not constant; by the old or by the new numbers, the rate has begun to fall before the present step.
  void plan(i64 steps, double cooldown);

  /// A training that continues from a state gives the same bits as one that was never interrupted. A state shares
  /// memory with the training: use it before the next step. Error: a state of another recipe or model; the trainer must
  /// not be used afterwards.
  TrainingState state() const;
  void load_state(const TrainingState& state);
  /// A fingerprint of all losses so far, the trained parameters and the optimiser's state.
  std::string hash() const;

 private:
  using Values = std::vector<Tensor>;  // of each parameter; then perhaps of each buffer
  struct Part {
    i64 micro_batch = 0;
    double share = 1;  // of the step's counted items
  };
  struct PartResult {
    double loss = 0, accuracy = 0;  // NaN: not known
  };
  template <class Attempt> auto whole_or_not_at_all(const Attempt& attempt);
  StepResult update();
  std::vector<Part> draw_step();
  std::vector<Part> own(const std::vector<Part>& parts) const;
  PartResult add_gradient(const Part& part);
  std::vector<PartResult> sum_in_tree(const std::vector<Part>& parts);
  Variable loss_of_own(const std::vector<Part>& parts);
  double seconds_of_update();
  BatchLoss loss_of(const Part& part);
  using Buffers = std::vector<nn::Module::NamedBuffer>;
  Buffers buffers() const;
  Values judged_values() const;
  Values copies(const Buffers& buffers = {}) const;
  void put(const Values& values, Buffers& buffers);
  void put(const Values& values);
  void with(const Values& values, const std::function<void()>& f);
  void load_values(const TrainingState& state, const std::string& prefix, Values& values,
                   const Buffers& buffers = {}) const;

  Task& task_;
  Ranks& ranks_;
  TrainingRecipe& recipe_;  // the task's
  Parameters parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  i64 steps_done_ = 0, best_step_ = 0, since_best_ = 0;
  bool ended_ = false;
  i64 items_read_ = 0;  // by the step that was drawn
  double best_score_ = std::numeric_limits<double>::infinity();
  optim::Average average_;   // the exponential mean, if the recipe asks for one
  std::deque<Values> kept_;  // the parameters at the last evaluations, for their mean
  Values best_;              // the judged parameters at the best step
  std::vector<double> losses_;
};

}  // namespace orrery
