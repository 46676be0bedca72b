// Chapter 7. A step of generation that fails, and is made again.
#pragma once

#include <doctest/doctest.h>

#include "core/random.h"
#include "tests/nn/compare.h"

namespace orrery {

/// Lets a step fail at each of its operations in turn, and checks that it changed nothing: made again, it gives what it
/// would have given. `make_state()` returns a new state for three sequences; `next(ids, state)` returns what the model
/// gives for more tokens.
template <class MakeState, class Next> void check_step_again(const MakeState& make_state, const Next& next) {
  Rng rng(6);
  const NoGradient nothing_recorded;
  const Tensor first = randint(1, 13, {3, 2}, rng), then = randint(1, 13, {3, 1}, rng);
  auto undisturbed = make_state();
  next(first, undisturbed);
  const Tensor expected = next(then, undisturbed);
  bool fails = true;
  for (int operation = 0; fails; ++operation) {
    CAPTURE(operation);
    auto state = make_state();
    next(first, state);
    FailingAt failing(operation);
    try {
      const ObserverScope scope(failing);
      next(then, state);
      fails = false;
      CHECK(operation >= 5);
    } catch (const Error&) { CHECK(same_bits(next(then, state), expected)); }
  }
}

}  // namespace orrery
