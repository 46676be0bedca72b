// Chapter 9. A watched step: try it, and explain it where it cannot be made.
//
// Serves: apps/toy/toy.cpp
#include "apps/training/training_step.h"

#include <cmath>
#include <limits>

#include "autograd/check/first_nan.h"
#include "core/files/hash.h"

namespace orrery {
namespace {

// What was not finite and which operation is to blame; "" where every number is finite.
std::string cause_of(const TrainingStep& step, const Parameters& parameters, const std::function<Variable()>& replay) {
  try {
    check_finite(step.loss, parameters, replay);
    return "";
  } catch (const Error& error) { return error.what(); }
}

}  // namespace

void make_step(const TrainingStep& step, optim::Optimizer& optimizer, const std::function<Variable()>& replay) {
  try {
    check(std::isfinite(step.loss), step.program, "the loss is not finite");
    // Without clipping the norm is still measured. Nothing moves unless it is finite.
    optimizer.step(step.rate, step.clip > 0 ? step.clip : std::numeric_limits<double>::infinity());
  } catch (const Error&) {
    const std::string cause = cause_of(step, optimizer.parameters(), replay);
    optimizer.clear_gradients();
    check(cause.empty(), step.program, "step ", step.number, " was not made, since a number is not finite; ",
          step.advice, '\n', cause);
    throw;  // another mistake, which says itself what it is
  }
}

Rng random_numbers(i64 seed, u64 purpose) {
  constexpr u64 stretch = u64{1} << 40;
  return Rng(static_cast<u64>(seed), purpose * stretch);
}

std::string training_hash(const std::vector<double>& losses, const optim::Optimizer& optimizer) {
  Fingerprint fingerprint;
  for (double loss : losses) fingerprint.add(loss);
  for (const NamedParameter& p : optimizer.parameters()) fingerprint.add(p.value.value());
  for (const auto& [name, tensor] : optimizer.state()) fingerprint.add(tensor);
  return fingerprint.hex();
}

}  // namespace orrery
