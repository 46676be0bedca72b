// Chapter 9. The loop of every training program.
//
// Serves: apps/toy/toy.cpp
#include "apps/training/run.h"

#include <unistd.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"

namespace orrery {
namespace {

std::string evaluation_line(const std::string& name, i64 step, double loss, bool best) {
  std::ostringstream line;
  line << "step " << step << ": " << name << ' ' << std::fixed << std::setprecision(4) << loss
       << (best ? ", the lowest so far" : "");
  return line.str();
}

// Evaluates, prints and logs the loss and what the hook adds. Returns the loss.
double evaluate_and_tell(Trainer& trainer, Progress& progress, TrainingLog& log, const RunHooks& hooks) {
  const i64 step = trainer.steps_done();
  const double loss = trainer.evaluate();
  const bool best = trainer.best_step() == step;
  progress.note(evaluation_line(trainer.task().evaluation_name(), step, loss, best));
  log.evaluation(step, loss, best);
  const std::string more = hooks.after_evaluation ? hooks.after_evaluation() : "";
  if (!more.empty()) {
    progress.note(more);
    log.sample(step, more);
  }
  return loss;
}

// Those that decide what is trained; "" if the program keeps none.
std::string options_in(const SavedParts& parts) {
  const auto options = parts.origin.find(options_key);
  return options == parts.origin.end() ? "" : options->second;
}

// The step from which FILE.resume goes on; 0 without such a file. If a later state could not be saved, it is earlier
// than the training's.
i64 step_kept_in(const TrainingFiles& files) {
  try {
    const Json standing = parse_json_object(read_safetensors_metadata(files.resume()).at("standing"), "standing");
    return standing.at("steps_done").get<i64>();
  } catch (const std::exception&) { return 0; }
}

}  // namespace

Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks) {
  files.check_texts(trainer, parts);
  const TrainingRecipe& recipe = trainer.recipe();
  Progress progress(std::cerr, terminal_of(STDERR_FILENO), recipe.steps, trainer.steps_done());
  progress.set_limit(60 * recipe.minutes);
  progress.set_plan(hooks.planned_seconds);
  const double start = steady_seconds();
  std::optional<double> validation;
  i64 settled_step = trainer.steps_done();  // at which there is nothing more to keep, as before the first step
  const auto keep = [&](const std::string& otherwise) {
    if (files.keep(trainer, parts))
      settled_step = trainer.steps_done();
    else
      progress.note("not saved: " + files.problem() + "; " + otherwise);
  };
  log.start(trainer, options_in(parts));
  Ending ending = Ending::finished;
  while (!trainer.finished()) {
    if (recipe.minutes > 0 && steady_seconds() - start >= 60 * recipe.minutes) ending = Ending::out_of_time;
    if (interrupt.requested()) ending = Ending::stopped;
    if (ending != Ending::finished) break;
    log.begin_step();
    const StepResult result = trainer.step();
    const i64 step = trainer.steps_done();
    const i64 planned = recipe.steps;
    const double planned_cooldown = recipe.cooldown;
    if (hooks.after_step) hooks.after_step(result);
    if (recipe.steps != planned || recipe.cooldown != planned_cooldown) log.plan(trainer, options_in(parts));
    progress.set_total(recipe.steps);
    progress.update({.step = step,
                     .loss = result.loss,
                     .accuracy = result.accuracy,
                     .rate = result.rate,
                     .tokens = result.tokens,
                     .validation = validation});
    log.step(step, result);
    if (!trainer.evaluation_is_due()) continue;
    validation = evaluate_and_tell(trainer, progress, log, hooks);
    if (std::isfinite(*validation))
      keep("the training continues");
    else
      settled_step = step;  // the last saved state is better, and the next step reports why
  }
  log.write_left_out();
  if (!log.problem().empty()) progress.note("the log is not whole: " + log.problem());
  if (ending != Ending::finished && settled_step != trainer.steps_done())  // stopped between two evaluations
    keep("the training cannot be resumed from this step");
  if (ending == Ending::out_of_time) progress.note("the time limit is reached");
  if (trainer.steps_done() < recipe.steps && trainer.out_of_patience()) {
    ending = Ending::out_of_patience;
    const std::string last =
        recipe.patience == 1 ? "evaluation was" : std::to_string(recipe.patience) + " evaluations were";
    progress.note("the last " + last + " not the best: the training ends");
  }
  return ending;
}

void save_model(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed) {
  if (!trainer.ended()) trainer.end_with_best();    // what comes before has failed, as when memory runs out
  files.end(parts, trainer.finished() && !failed);  // the state of a failed one can repeat what failed
  files.check_kept();
  if (files.used()) std::cerr << "saved to " << harmless(files.model()) << '\n';
  if (!trainer.finished()) print_stopped(trainer, files, command, failed);
  log.end();
}

bool stopped_before_a_step(const Trainer& trainer, i64 steps_before, const TrainingFiles& files,
                           const std::string& command, const std::exception_ptr& failure) {
  if (trainer.steps_done() != steps_before || trainer.finished()) return false;
  if (failure) std::rethrow_exception(failure);
  print_stopped(trainer, files, command, false);
  return true;
}

void print_stopped(const Trainer& trainer, const TrainingFiles& files, const std::string& command, bool failed) {
  const i64 done = trainer.steps_done();
  // A step that failed would fail again. Before the first step, the state that stands there is another training's.
  const i64 kept = failed || done == 0 || !files.used() ? 0 : step_kept_in(files);
  std::cerr << "stopped after step " << done << " of " << trainer.recipe().steps;
  if (!files.used())
    std::cerr << "; without --save it cannot be resumed";
  else if (kept > 0)
    std::cerr << "; to resume" << (kept < done ? " from step " + std::to_string(kept) : "") << ": " << command
              << " --resume " << harmless(shell_quoted(files.model()));
  std::cerr << std::endl;
}

}  // namespace orrery
