// Chapter 9. A training step that checks its numbers: try it, and explain why it failed.
#include "apps/training/training_step.h"

#include <cmath>
#include <limits>
#include <new>

#include "autograd/check/first_nan.h"

namespace orrery {
namespace {

// Which number was not finite and which operation caused it; "" if every number is finite. The step is run once more
// only if one is not, so memory can run out only then.
std::string cause_of(double loss, const Parameters& parameters, const std::function<Variable()>& loss_of) {
  try {
    check_finite(loss, parameters, loss_of);
    return "";
  } catch (const Error& error) { return error.what(); } catch (const std::bad_alloc&) {
    return "there is not enough memory to run the step once more and name the operation";
  }
}

}  // namespace

void make_step(const TrainingStep& step, double loss, optim::Optimizer& optimizer,
               const std::function<Variable()>& loss_of) {
  try {
    check(std::isfinite(loss), step.program, "the loss is not finite");
    // Without clipping the norm is still computed. No parameter changes unless it is finite.
    optimizer.step(step.rate, step.clip > 0 ? step.clip : std::numeric_limits<double>::infinity());
  } catch (const Error&) {
    const std::string cause = cause_of(loss, optimizer.parameters(), loss_of);
    optimizer.clear_gradients();
    check(cause.empty(), step.program, "step ", step.number,
          " was not made, because a number is not finite; a smaller --rate or a longer --warmup may help\n",
          Lines{cause});
    throw;  // some other error
  }
}

}  // namespace orrery
