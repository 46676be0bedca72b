// Chapter 9. What a trainer trains: a model with its batches and its evaluation.
//
// A program derives its task from this class; apps/training/trainer.h does the rest. For each step the trainer calls
//   draw(step, k)                    draws k micro-batches, and returns the number of target tokens of each
//   loss(i, pass)                    the mean loss per target token of micro-batch i; may be called more than once
// The step's loss is the mean over all its target tokens, so that unequal padding does not give one token more weight
// than another.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "apps/program/stopwatch.h"
#include "autograd/variable.h"
#include "core/error.h"
#include "nn/module.h"
#include "nn/pass.h"

namespace orrery {

class Task {
 public:
  virtual ~Task() = default;
  /// The program's name, with which errors begin.
  virtual std::string program() const = 0;
  /// What is trained. Its parameters stay the same Variables during a training.
  virtual nn::Module& module() = 0;

  /// Draws the micro-batches of a step, counted from 1; returns the number of target tokens of each.
  virtual std::vector<i64> draw(i64 step, i64 micro_batches) = 0;
  /// All tokens that the drawn step reads, for the tokens/s of the progress line.
  virtual i64 tokens_read() const = 0;
  /// The mean loss per target token of a drawn micro-batch: the same bits if it is called again.
  virtual Variable loss(i64 micro_batch, nn::Pass& pass) = 0;
  /// The share of target tokens of the last `loss` that had the highest score; nothing if the task does not count it.
  virtual std::optional<double> accuracy() const { return std::nullopt; }

  /// The loss of a model that has learned nothing: of one that gives all n tokens the same probability, ln n. By this a
  /// training is found to have diverged (Trainer::has_diverged); without it, none is.
  virtual double loss_of_guessing() const { return std::numeric_limits<double>::infinity(); }

  /// The validation loss of the model as it is: lower is better. Needed only by recipes that evaluate.
  virtual double evaluate() { fail(program(), "has no validation loss"); }
  /// How long `evaluate` takes. A task whose validation may take minutes tries a part of it.
  virtual double seconds_of_evaluation() {
    return seconds_of([&] { evaluate(); });
  }
  /// What `evaluate` returns, for the lines that a training prints.
  virtual std::string evaluation_name() const { return "validation loss"; }

  /// What the number of the step does not determine about random numbers, such as a position in a shuffled order. A
  /// resumed training continues there. The number of entries never changes.
  virtual std::vector<u64> positions() const { return {}; }
  virtual void go_to(const std::vector<u64>&) {}
};

}  // namespace orrery
