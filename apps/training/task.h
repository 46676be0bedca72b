// Chapter 9. What a trainer trains: a model with its recipe, its batches, its loss and its evaluation.
//
// A program derives its task from this class; apps/training/trainer.h does the rest. For each step the trainer calls
//   draw(step, k)                    draws k micro-batches, and returns how many items of the task's unit each counts
//   loss(i, pass)                    the mean loss per counted item of micro-batch i; may be called more than once
// The step's loss is the mean over all its counted items, so that unequal padding does not give one token more weight
// than another.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "apps/program/stopwatch.h"
#include "apps/training/ranks.h"
#include "apps/training/recipe.h"
#include "autograd/variable.h"
#include "core/error.h"
#include "nn/module.h"
#include "nn/pass.h"

namespace orrery {

/// How many items of the task's unit a micro-batch has.
struct Items {
  i64 counted = 0;     ///< over which its loss is a mean: target tokens, images, pairs
  i64 read = counted;  ///< for the speed on the progress line: a translator also reads the source
};

/// What a micro-batch costs.
struct BatchLoss {
  Variable loss;                     ///< the mean over the counted items
  std::optional<double> accuracy{};  ///< share of the counted items whose answer had the highest score, if it is known
};

/// Which of two values of a score is the better one.
enum class Better { lower, higher };
/// A number by which a model is judged, such as {"validation loss", 1.88} or {"BLEU", 41.0, Better::higher}.
struct Score {
  std::string name;
  double value = 0;
  Better better = Better::lower;
};

class Task {
 public:
  virtual ~Task() = default;
  /// The program's name, with which errors begin.
  virtual std::string program() const = 0;
  /// What is trained. Its parameters stay the same Variables during a training.
  virtual nn::Module& module() = 0;
  /// How it is trained. This is the only copy: the trainer reads it, and `Trainer::plan` changes it.
  virtual TrainingRecipe& recipe() = 0;
  /// What the task counts: "tokens", "images", "pairs", "seconds".
  virtual std::string unit() const { return "tokens"; }

  /// Draws the micro-batches of a step, counted from 1; returns the items of each.
  virtual std::vector<Items> draw(i64 step, i64 micro_batches) = 0;
  /// The mean loss per counted item of a drawn micro-batch: the same bits if it is called again.
  virtual BatchLoss loss(i64 micro_batch, nn::Pass& pass) = 0;
  /// Whether each item's loss depends on the others of its batch, as a contrastive loss does. Such a step has one
  /// micro-batch: of several the loss would be another one.
  virtual bool needs_whole_batch() const { return false; }
  /// Items that a step reads on average, if steps differ in size: for an estimate from the time of one step. 0: all
  /// steps are alike.
  virtual double mean_items_read() const { return 0; }

  /// The loss of a model that has learned nothing: of one that gives all n tokens the same probability, ln n. By this a
  /// training is found to have diverged (Trainer::has_diverged); without it, none is.
  virtual double loss_of_guessing() const { return std::numeric_limits<double>::infinity(); }

  /// The scores of the model as it is, always the same ones in the same order. The first of them judges. Needed only by
  /// recipes that evaluate. What takes time is left to `judges`, piece by piece.
  virtual std::vector<Score> evaluate() { fail(program(), "has no evaluation"); }
  /// How long `evaluate` takes. A task whose validation may take minutes tries a part of it.
  virtual double seconds_of_evaluation() {
    return seconds_of([&] { evaluate(); });
  }

  /// What the number of the step does not determine about random numbers, such as a position in a shuffled order. A
  /// resumed training continues there. The number of entries never changes.
  virtual std::vector<u64> positions() const { return {}; }
  virtual void go_to(const std::vector<u64>&) {}

  /// Calls f, in which these ranks share out evaluations. All of them call it.
  void judge_on(Ranks& ranks, const std::function<void()>& f) {
    struct Ending {
      Ranks*& judges;
      ~Ending() { judges = &Ranks::alone(); }
    } ending{judges_};
    judges_ = &ranks;
    f();
  }

 protected:
  /// Whose `share_out` and `sums` judge the pieces of an evaluation.
  Ranks& judges() const { return *judges_; }

 private:
  Ranks* judges_ = &Ranks::alone();
};

}  // namespace orrery
