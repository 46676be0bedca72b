// Chapter 9. A training program's step, watched: where a number is not finite nothing moves, and the cause is named.
//
// The norm of the gradients, which clipping needs anyway, is finite only if every gradient is. So the watch costs a
// look at the loss and at the norm, nothing more; `orrery bench promises` measures it. When one of them is not finite,
// the pass is run once more under an observer (autograd/check/first_nan.h), which names the first operation that gave
// such a number.
// Besides, what else the training programs share: random numbers for each purpose, and a fingerprint of the whole run.
// Serves: apps/toy/toy.cpp
#pragma once

#include <functional>
#include <string>

#include "core/random.h"
#include "optim/optimizer.h"

namespace orrery {

/// A step of a training program.
struct TrainingStep {
  std::string program;        ///< "toy": errors begin with it
  i64 number = 0;             ///< counted from 1
  double rate = 0;            ///< the learning rate
  double clip = 0;            ///< largest norm of the gradient; 0 does not clip
  std::string rate_option{};  ///< of the program, such as "--rate": what may help where a number is not finite
};

/// Forward by `loss_of`, backward, optimizer.step(rate, clip); returns the loss. Error: the loss or a gradient is not
/// finite; then no parameter moves, the gradients are forgotten, and the message tells what the same pass met first.
/// `loss_of` must give the same bits when it is called again before the next step.
double train_step(const TrainingStep& step, optim::Optimizer& optimizer, const std::function<Variable()>& loss_of);

/// The same where backward, from `loss`, has run already.
void make_step(const TrainingStep& step, double loss, optim::Optimizer& optimizer,
               const std::function<Variable()>& loss_of);

/// Random numbers of one seed for purpose number `purpose`; those of different purposes never meet.
Rng random_numbers(i64 seed, u64 purpose);

/// A fingerprint of a training: its losses so far, its parameters and the optimiser's state.
std::string training_hash(const std::vector<double>& losses, const optim::Optimizer& optimizer);

}  // namespace orrery
