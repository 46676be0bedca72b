// Chapter 9. The trainer: steps with accumulated gradients, averages, the best parameters.
#include "apps/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "apps/program/stopwatch.h"
#include "apps/training/gradient_tree.h"
#include "autograd/check/first_nan.h"
#include "autograd/ops/arithmetic.h"
#include "core/tensor_ops.h"
#include "nn/files/names.h"

namespace orrery {
namespace {

// What a rank says that looked for the first number that is not finite and found none in its part of the step.
constexpr std::string_view nothing_found = "every number of the pass was finite";

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

// Whether a score is better than the best so far; the first one that is finite is.
bool is_better(const Score& score, double best, bool is_first) {
  if (is_first) return std::isfinite(score.value);
  return score.better == Better::lower ? score.value < best : score.value > best;
}
// Of models with equal scores, such as the share of few texts, the last one is kept, which has learned most.
bool is_kept(const Score& score, double best, bool is_first) {
  return is_better(score, best, is_first) || (!is_first && score.value == best);
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

Trainer::Trainer(Task& task, Ranks& ranks)
    : task_(task),
      ranks_(ranks),
      recipe_(task.recipe()),
      parameters_(nn::parameters_on_disk(task.module())),
      optimizer_(make_optimizer(recipe_, parameters_)) {
  recipe_.validate();
  check(recipe_.schedule != Schedule::noam || recipe_.width > 0, task.program(),
        "Noam's schedule needs the model's width in the recipe");
  check(ranks_.size() == 1 || !task.needs_whole_batch(), task.program(),
        "the loss compares all items of a batch, so ranks cannot share a step");
  check(recipe_.micro_batches == 1 || !task.needs_whole_batch(), task.program(),
        "the loss compares all items of a batch, so a step is one batch: --micro-batches must be 1, not ",
        recipe_.micro_batches);
  check(recipe_.micro_batches >= ranks_.size(), task.program(), "--micro-batches must be at least ", ranks_.size(),
        ", one for each rank, not ", recipe_.micro_batches);
  if (ranks_.size() > 1)
    for (const nn::Module::NamedBuffer& b : buffers())
      fail(task.program(), "the buffer ", b.name,
           " depends on all micro-batches of a step, so ranks cannot share them");
  average_ = optim::Average(recipe_.average);
  if (recipe_.average > 0) average_.set(copies(), 0);  // so that no step needs memory for it
}

// The next step's micro-batches. Errors: the task drew another number of them; none has something to count.
std::vector<Trainer::Part> Trainer::draw_step() {
  const std::vector<Items> drawn = task_.draw(steps_done_ + 1, recipe_.micro_batches);
  check(static_cast<i64>(drawn.size()) == recipe_.micro_batches, task_.program(), "step ", steps_done_ + 1, " has ",
        drawn.size(), " micro-batches instead of ", recipe_.micro_batches);
  i64 counted = 0;
  items_read_ = 0;
  for (const Items& items : drawn) {
    counted += items.counted;
    items_read_ += items.read;
  }
  check(counted > 0, task_.program(), "step ", steps_done_ + 1, " has no ", task_.unit(), " to learn from");
  std::vector<Part> parts;
  for (const Items& items : drawn)
    parts.push_back({std::ssize(parts), static_cast<double>(items.counted) / static_cast<double>(counted)});
  return parts;
}

// Those that this rank computes. Where nothing is counted, there is nothing to compute.
std::vector<Trainer::Part> Trainer::own(const std::vector<Part>& parts) const {
  const auto [begin, end] = part_of({0, recipe_.micro_batches}, ranks_.rank(), ranks_.size());
  std::vector<Part> own(parts.begin() + begin, parts.begin() + end);
  std::erase_if(own, [](const Part& part) { return part.share == 0; });
  return own;
}

// What a micro-batch adds to the step's loss: the same bits each time, even with dropout, since a Pass is a value.
BatchLoss Trainer::loss_of(const Part& part) {
  nn::Pass pass = nn::Pass::training(static_cast<u64>(recipe_.seed), steps_done_ + 1, part.micro_batch);
  BatchLoss result = task_.loss(part.micro_batch, pass);
  if (part.share != 1) result.loss = scale(result.loss, part.share);
  return result;
}

// A step or an evaluation that fails, as when memory runs out, leaves nothing behind: no gradient, to which the next
// step would add, and no position moved, so that the same step can be tried again.
template <class Attempt> auto Trainer::whole_or_not_at_all(const Attempt& attempt) {
  const std::vector<u64> positions = task_.positions();
  try {
    return attempt();
  } catch (...) {
    optimizer_->clear_gradients();
    task_.go_to(positions);
    throw;
  }
}

StepResult Trainer::step() {
  if (losses_.size() == losses_.capacity()) losses_.reserve(2 * losses_.size() + 64);  // nothing fails after the update
  const StepResult result = whole_or_not_at_all([&] { return update(); });
  ++steps_done_;
  losses_.push_back(result.loss);
  if (recipe_.average > 0) average_.add(parameters_);
  return result;
}

// What a micro-batch gives, if something is counted in it.
Trainer::PartResult Trainer::add_gradient(const Part& part) {
  if (part.share == 0) return {};
  const auto [loss, accuracy] = loss_of(part);
  backward(loss);
  return {loss.item(), accuracy.value_or(std::nan(""))};
}

// dL/dp of L = sum_i (items_i / items) L_i is the sum of what backward from each part gives, whichever rank has it.
std::vector<Trainer::PartResult> Trainer::sum_in_tree(const std::vector<Part>& parts) {
  const i64 count = recipe_.micro_batches, me = ranks_.rank(), size = ranks_.size();
  std::vector<PartResult> results(static_cast<size_t>(count));
  GradientTree tree(optimizer_->parameters(), count);
  const Stretch own = part_of({0, count}, me, size);
  for (i64 i = own.begin; i < own.end; ++i) {
    const auto pass = [&] { results[static_cast<size_t>(i)] = add_gradient(parts[static_cast<size_t>(i)]); };
    if (i + 1 == own.end) {
      tree.take_last(i, ranks_, pass);
    } else {
      pass();
      tree.take(i);
    }
  }
  Ranks::Received of_rank;
  for (i64 r = 0; r < size; ++r) {
    const Stretch part = part_of({0, count}, r, size);
    of_rank.push_back(std::as_writable_bytes(
        std::span(results).subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.count()))));
  }
  ranks_.exchange(Ranks::Sent(of_rank.size(), of_rank[static_cast<size_t>(me)]), of_rank);
  tree.finish(ranks_);
  return results;
}

// The loss of this rank's part of a step.
Variable Trainer::loss_of_own(const std::vector<Part>& parts) {
  Variable sum;
  for (const Part& part : own(parts)) {
    const Variable loss = loss_of(part).loss;
    sum = sum.defined() ? add(sum, loss) : loss;
  }
  return sum.defined() ? sum : constant(full({}, 0.0));
}

StepResult Trainer::update() {
  const std::vector<Part> parts = draw_step();
  StepResult result{.rate = recipe_.rate_of(steps_done_ + 1), .items = items_read_};
  // A single micro-batch, which only one process can have, has all that makes the gradient.
  const auto results = parts.size() == 1 ? std::vector{add_gradient(parts[0])} : sum_in_tree(parts);
  for (size_t i = 0; i < results.size(); ++i) {
    if (parts[i].share == 0) continue;
    result.loss += results[i].loss;
    if (!std::isnan(results[i].accuracy))
      result.accuracy = result.accuracy.value_or(0) + parts[i].share * results[i].accuracy;
  }
  bool seeks_cause = false;
  try {
    make_step({.program = task_.program(), .number = steps_done_ + 1, .rate = result.rate, .clip = recipe_.clip},
              result.loss, *optimizer_, [&] {
                seeks_cause = true;
                return loss_of_own(parts);
              });
  } catch (const Error& error) {
    if (ranks_.size() == 1 || !seeks_cause) throw;  // memory may have run out here alone
    // A number is not finite on all ranks, and each has looked for the cause in its own part.
    for (const std::string& rule : ranks_.each_text(error.rule()))
      if (rule.find(nothing_found) == rule.npos) throw Error(task_.program(), rule);
    throw;
  }
  return result;
}

i64 Trainer::parameter_count() const {
  i64 count = 0;
  for (const NamedParameter& p : parameters_) count += p.value.value().count();
  return count;
}

bool Trainer::evaluation_is_due() const {
  return recipe_.evaluate_every > 0 && steps_done_ > 0 &&
         (steps_done_ % recipe_.evaluate_every == 0 || steps_done_ == recipe_.steps);
}

std::vector<Score> Trainer::evaluate() {
  std::deque<Values> kept_before = kept_;  // the same tensors
  std::vector<Score> scores;
  bool best = false;
  try {
    whole_or_not_at_all([&] {
      if (recipe_.average_last > 0) {
        kept_.push_back(copies());
        if (static_cast<i64>(kept_.size()) > recipe_.average_last) kept_.pop_front();
      }
      with_judged([&] {
        task_.judge_on(ranks_, [&] { scores = task_.evaluate(); });
        for (Score& score : scores) score.value = ranks_.first(score.value);  // so that all decide the same
        best = is_kept(scores.at(0), best_score_, best_step_ == 0);
        if (best) best_ = copies(buffers());
      });
    });
  } catch (...) {
    kept_.swap(kept_before);
    throw;
  }
  since_best_ = is_better(scores[0], best_score_, best_step_ == 0) ? 0 : since_best_ + 1;
  if (best) {
    best_score_ = scores[0].value;
    best_step_ = steps_done_;
  }
  return scores;
}

bool Trainer::out_of_patience() const { return recipe_.patience > 0 && since_best_ >= recipe_.patience; }

// Asked for each time, since a layer may replace its buffers.
Trainer::Buffers Trainer::buffers() const {
  Buffers all = nn::buffers_on_disk(task_.module());
  std::erase_if(all, [](const nn::Module::NamedBuffer& buffer) { return buffer.derived; });
  return all;
}

Trainer::Values Trainer::copies(const Buffers& buffers) const {
  Values values;
  for (const NamedParameter& p : parameters_) values.push_back(p.value.value().clone());
  for (const nn::Module::NamedBuffer& b : buffers) values.push_back(b.value.clone());
  return values;
}

void Trainer::put(const Values& values, Buffers& buffers) {
  for (size_t i = 0; i < parameters_.size(); ++i) copy_into(parameters_[i].value.mutable_value(), values[i]);
  for (size_t i = parameters_.size(); i < values.size(); ++i)
    copy_into(buffers.at(i - parameters_.size()).value, values[i]);
}

void Trainer::put(const Values& values) {
  Buffers places;
  if (values.size() > parameters_.size()) places = buffers();
  put(values, places);
}

// Empty if the trained parameters themselves are judged.
Trainer::Values Trainer::judged_values() const {
  if (recipe_.average > 0) return average_.values();
  optim::Average mean;
  for (const Values& values : kept_) mean.add(values);
  return mean.values();
}

void Trainer::with(const Values& values, const std::function<void()>& f) {
  if (values.empty()) return f();
  struct Restore {
    Trainer& trainer;
    Buffers buffers;
    const Values trained;
    ~Restore() { trainer.put(trained, buffers); }
  } restore{*this, buffers(), copies(buffers())};
  put(values, restore.buffers);
  f();
}

void Trainer::with_judged(const std::function<void()>& f) { with(judged_values(), f); }

void Trainer::with_best(const std::function<void()>& f) {
  if (best_step_ > 0)
    with(best_, f);
  else
    with_judged(f);
}

bool Trainer::has_diverged() const {
  if (losses_.empty()) return false;
  constexpr size_t many = 30;
  const size_t last = std::min(losses_.size(), many), judged = finished() ? last : many;
  const double bound = 2 * std::max(losses_[0], task_.loss_of_guessing());
  const auto beyond = std::count_if(losses_.end() - static_cast<std::ptrdiff_t>(last), losses_.end(),
                                    [=](double loss) { return loss > bound; });
  return losses_.back() > bound && static_cast<size_t>(beyond) > judged / 2;
}

void Trainer::end_with_judged() {
  if (has_diverged() && best_step_ > 0) return end_with_best();
  const Values values = judged_values();
  if (!values.empty()) put(values);
  ended_ = true;
}

void Trainer::end_with_best() {
  if (best_step_ == 0) return end_with_judged();
  put(best_);
  ended_ = true;
}

double Trainer::seconds_of_step() {
  const std::vector<u64> positions = task_.positions();
  constexpr double long_enough = 10;
  std::vector<Part> drawn = draw_step(), parts = own(drawn);
  std::erase_if(drawn, [](const Part& part) { return part.share == 0; });
  if (parts.empty()) parts.assign(1, drawn[0]);
  double share = 0;
  for (const Part& part : parts) share += part.share;
  // The first pass also allocates memory and starts threads. If it takes long, that does not matter, and it is enough.
  double seconds = seconds_of([&] { backward(loss_of(parts[0]).loss); }) / parts[0].share * share;
  if (seconds < long_enough)
    seconds = seconds_of([&] {
      for (const Part& part : parts) backward(loss_of(part).loss);
    });
  task_.go_to(positions);
  const double mean = task_.mean_items_read(), of_mean_step = mean > 0 ? mean / static_cast<double>(items_read_) : 1;
  return ranks_.first((seconds + seconds_of_update()) * of_mean_step);
}

// Seconds of the optimiser, with the gradients of a trial and a rate of 0. What it remembers is made anew, so this is
// for a training that has not begun; 0 for others, and if a gradient is not finite.
double Trainer::seconds_of_update() {
  constexpr double endless = std::numeric_limits<double>::infinity();
  double seconds = 0;
  if (steps_done_ == 0) {
    auto untried = make_optimizer(recipe_, parameters_);  // first: if memory runs out here, nothing has changed
    try {
      seconds = seconds_of([&] { optimizer_->step(0, endless); });
    } catch (const Error&) {}  // the first step will say why
    optimizer_ = std::move(untried);
  }
  for (NamedParameter& p : parameters_) p.value.clear_gradient();
  return seconds;
}

void Trainer::plan(i64 steps, double cooldown) {
  TrainingRecipe planned = recipe_;
  planned.steps = steps;
  planned.cooldown = cooldown;
  check(recipe_.schedule == Schedule::constant, task_.program(), "only a constant rate allows another number of steps");
  for (const TrainingRecipe& each : {recipe_, planned})
    check(each.steps_before_cooldown() >= steps_done_, task_.program(), "the rate falls after ",
          each.steps_before_cooldown(), " of ", each.steps, " steps, and ", steps_done_, " are made");
  recipe_ = planned;
}

double Trainer::expected_seconds(double seconds_of_step) {
  const double seconds = seconds_of_step * static_cast<double>(recipe_.steps - steps_done_);
  const i64 evaluations = evaluations_left();
  return evaluations == 0 ? seconds : seconds + seconds_of_evaluation() * static_cast<double>(evaluations);
}

i64 Trainer::evaluations_left() const {
  const i64 every = recipe_.evaluate_every;
  if (every == 0 || steps_done_ >= recipe_.steps) return 0;
  return recipe_.steps / every - steps_done_ / every + (recipe_.steps % every != 0 ? 1 : 0);
}

double Trainer::seconds_of_evaluation() {
  const std::vector<u64> positions = task_.positions();
  double seconds = 0;
  task_.judge_on(ranks_, [&] { seconds = task_.seconds_of_evaluation(); });
  task_.go_to(positions);
  return ranks_.first(seconds);
}

}  // namespace orrery
