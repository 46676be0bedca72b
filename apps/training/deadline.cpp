// Chapter 9. A training that ends in a given time: its speed, and how many steps are left.
#include "apps/training/deadline.h"

#include <algorithm>
#include <cmath>

namespace orrery {

// Seconds for which the machine slept during the step that ends now: all but the usual time, if it took far longer than
// other steps, and too large a part of the whole time to be an evaluation.
double Deadline::slept_until(double now) {
  constexpr double far_longer = 10, large_part = 0.05;
  const double took = now - last_, usual = steps_awake_ > 0 ? awake_ / static_cast<double>(steps_awake_) : took;
  last_ = now;
  if (took > far_longer * usual && took > large_part * (end_ - begin_)) return took - usual;
  awake_ += took;
  ++steps_awake_;
  return 0;
}

bool Deadline::settles(Trainer& trainer) {
  const i64 done = trainer.steps_done();
  const double now = clock_(), slept = slept_until(now);
  if (settled_ && slept > 0) slept_in_fall_ = true;
  if (settled_) return false;
  slept_ += slept;
  const double flat = (1 - cooldown) * (end_ - begin_);
  if (now < begin_ + flat / 2) {
    halfway_ = now;
    halfway_done_ = done;
    slept_ = 0;
  }
  if (now < begin_ + flat) {
    // The machine is faster than expected.
    if (done == trainer.recipe().steps_before_cooldown()) trainer.plan(2 * trainer.recipe().steps, cooldown);
    return false;
  }
  settled_ = true;
  const double speed = static_cast<double>(done - halfway_done_) / (now - halfway_ - slept_);
  const i64 left = std::max<i64>(1, std::llround(speed * (end_ - now)));
  trainer.plan(done + left, static_cast<double>(left) / static_cast<double>(done + left));
  return true;
}

}  // namespace orrery
