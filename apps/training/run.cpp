// Chapter 9. The run of every training program.
#include "apps/training/run.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"

namespace orrery {
namespace {

// "step 250: validation loss 1.8812, the lowest so far; accuracy 0.9100"
std::string evaluation_line(i64 step, const std::vector<Score>& scores, bool best) {
  std::ostringstream line;
  line << "step " << step << ": " << std::fixed << std::setprecision(4);
  for (size_t i = 0; i < scores.size(); ++i)
    line << (i == 0 ? "" : "; ") << scores[i].name << ' ' << scores[i].value
         << (i == 0 && best ? scores[i].better == Better::lower ? ", the lowest so far" : ", the highest so far" : "");
  return line.str();
}

// What follows --resume, so that the log goes on as well: in the folder of --save FOLDER/ it is found.
std::string training_to_resume(const std::string& model, const std::string& log) {
  const std::filesystem::path folder = std::filesystem::path(model).parent_path() / "";
  const bool in_folder = model_in(folder.string()) == model && log == (folder / log_in_folder).string();
  if (in_folder) return shell_quoted(folder.string());
  return shell_quoted(model) + (log.empty() ? "" : " --log " + shell_quoted(log));
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
    const std::string standing = read_safetensors_metadata(files.resume()).at("standing");
    return parse_json_object(standing, "training standing").at("steps_done").get<i64>();
  } catch (const std::exception&) { return 0; }
}

// A failure beside the one that ends the program.
void print_failure(const std::exception_ptr& failure) {
  std::cerr << "another failure: " << message_of(failure) << std::endl;
}

// How far an unfinished training is, and how to resume it.
void print_stopped(const Trainer& trainer, const TrainingFiles& files, const TrainingLog& log,
                   const std::string& command, bool failed) {
  const i64 done = trainer.steps_done();
  // A step that failed would fail again. Before the first step, the state that stands there is another training's.
  const i64 kept = failed || done == 0 || !files.used() ? 0 : step_kept_in(files);
  std::cerr << "stopped after step " << done << " of " << trainer.recipe().steps;
  if (!files.used())
    std::cerr << "; without --save it cannot be resumed";
  else if (kept > 0)
    std::cerr << "; to resume" << (kept < done ? " from step " + std::to_string(kept) : "") << ": " << command
              << " --resume " << harmless(training_to_resume(files.model(), log.path()));
  std::cerr << std::endl;
}

// Error: the training has diverged.
void check_converges(const Trainer& trainer, const TrainingFiles& files) {
  if (!trainer.has_diverged()) return;
  const std::vector<double>& losses = trainer.losses();
  std::ostringstream model;
  if (trainer.best_step() > 0)
    model << "; the best model, of step " << trainer.best_step() << ", is kept";
  else if (files.used())
    model << "; no model is saved, since none was evaluated before (--evaluate-every)";
  fail(trainer.task().program(), "step ", losses.size(), ": the training has diverged, its loss is ", losses.back(),
       " after ", losses.front(), " at the beginning; a smaller --rate, a longer --warmup or --clip may help",
       model.str());
}

// A training while it runs: makes its steps, and shows, logs and keeps them.
class TrainingRun {
 public:
  TrainingRun(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log, const RunHooks& hooks)
      : trainer_(trainer),
        files_(files),
        parts_(parts),
        log_(log),
        hooks_(hooks),
        progress_(std::cerr, terminal_of(STDERR_FILENO), trainer.recipe().steps, trainer.steps_done()),
        settled_step_(trainer.steps_done()) {
    progress_.set_limit(60 * trainer.recipe().minutes);
    progress_.set_plan(hooks.planned_seconds);
    progress_.set_unit(trainer.task().unit());
    log_.start(trainer, options_in(parts));
  }

  void step() {
    log_.begin_step();
    const StepResult result = trainer_.step();
    const TrainingRecipe& recipe = trainer_.recipe();
    const i64 planned_steps = recipe.steps;
    const double planned_cooldown = recipe.cooldown;
    if (hooks_.after_step) hooks_.after_step(result);
    if (recipe.steps != planned_steps || recipe.cooldown != planned_cooldown) log_.plan(trainer_, options_in(parts_));
    progress_.set_total(recipe.steps);
    progress_.update({.step = trainer_.steps_done(),
                      .loss = result.loss,
                      .accuracy = result.accuracy,
                      .rate = result.rate,
                      .items = result.items,
                      .validation = validation_});
    log_.step(trainer_.steps_done(), result);
  }

  // Evaluates, prints and logs the scores and what the hook adds, and keeps the training's state.
  void evaluate() {
    const i64 step = trainer_.steps_done();
    const std::vector<Score> scores = trainer_.evaluate();
    const bool best = trainer_.best_step() == step;
    progress_.note(evaluation_line(step, scores, best));
    log_.evaluation(step, scores, best);
    const std::string more = hooks_.after_evaluation ? hooks_.after_evaluation() : "";
    if (!more.empty()) {
      progress_.note(more);
      log_.sample(step, more);
    }
    validation_ = scores[0].value;
    if (std::isfinite(*validation_))
      keep("the training continues");
    else
      settled_step_ = step;  // the last saved state is better, and the next step reports why
  }

  // After the last step: what is not in the log or in the files yet. A training that was stopped between two
  // evaluations has a state to keep.
  void end(bool stopped) {
    log_.write_left_out();
    if (!log_.problem().empty()) note("the log is not whole: " + log_.problem());
    if (stopped && settled_step_ != trainer_.steps_done()) keep("the training cannot be resumed from this step");
  }

  void note(const std::string& line) { progress_.note(line); }

 private:
  void keep(const std::string& otherwise) {
    if (files_.keep(trainer_, parts_))
      settled_step_ = trainer_.steps_done();
    else
      note("not saved: " + files_.problem() + "; " + otherwise);
  }

  Trainer& trainer_;
  TrainingFiles& files_;
  const SavedParts& parts_;
  TrainingLog& log_;
  const RunHooks& hooks_;
  Progress progress_;
  std::optional<double> validation_;  // the latest score that judges
  i64 settled_step_;                  // at which there is nothing more to keep, as before the first step
};

}  // namespace

Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks) {
  files.check_texts(trainer, parts);
  const TrainingRecipe& recipe = trainer.recipe();
  Ranks& ranks = trainer.ranks();
  const auto now = [&] { return recipe.minutes > 0 ? ranks.first(steady_seconds()) : 0; };
  const double start = now();
  const auto is_out_of_time = [&] {
    return (recipe.minutes > 0 && now() - start >= 60 * recipe.minutes) ||
           (hooks.is_out_of_time && hooks.is_out_of_time());
  };
  TrainingRun run(trainer, files, parts, log, hooks);
  Ending ending = Ending::finished;
  while (!trainer.finished()) {
    if (is_out_of_time()) ending = Ending::out_of_time;
    if (ranks.any(interrupt.requested())) ending = Ending::stopped;
    if (ending != Ending::finished) break;
    run.step();
    check_converges(trainer, files);
    if (trainer.evaluation_is_due()) run.evaluate();
  }
  run.end(ending != Ending::finished);
  if (ending == Ending::out_of_time) run.note("the time limit is reached");
  if (trainer.steps_done() < recipe.steps && trainer.out_of_patience()) {
    ending = Ending::out_of_patience;
    const std::string last =
        recipe.patience == 1 ? "evaluation was" : std::to_string(recipe.patience) + " evaluations were";
    run.note("the last " + last + " not the best: the training ends");
  }
  return ending;
}

void save_model(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed) {
  const auto save = [&] {
    if (!trainer.ended()) trainer.end_with_best();    // what comes before has failed, as when memory runs out
    files.end(parts, trainer.finished() && !failed);  // the state of a failed one can repeat what failed
    files.check_kept();
    if (files.used()) std::cerr << "saved to " << harmless(files.model()) << '\n';
  };
  const auto tell_stopped = [&] {
    if (!trainer.finished()) print_stopped(trainer, files, log, command, failed);
  };
  end_training(nullptr, {save, tell_stopped, [&] { log.end(); }});
}

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) { return std::string(out_of_memory); } catch (const std::exception& error) {
    return harmless_lines(error.what());
  } catch (...) { return "an unknown error"; }
}

std::exception_ptr failure_of(const std::function<void()>& steps) {
  try {
    steps();
  } catch (...) { return std::current_exception(); }
  return nullptr;
}

void end_training(std::exception_ptr failure, const std::vector<std::function<void()>>& parts) {
  for (const std::function<void()>& part : parts) {
    const std::exception_ptr another = failure_of(part);
    if (failure && another) print_failure(another);
    if (!failure) failure = another;
  }
  if (failure) std::rethrow_exception(failure);
}

int run_training(const Training& training) {
  Trainer& trainer = training.trainer;
  const i64 done_before = trainer.steps_done();
  print_start(std::cerr, {.seed = trainer.recipe().seed,
                          .parameters = trainer.parameter_count(),
                          .expected_seconds = training.expected_seconds,
                          .time_limit = training.options.time_limit});
  if (done_before > 0) std::cerr << "resuming after step " << done_before << " of " << trainer.recipe().steps << '\n';
  TrainingLog log(training.options.log, training.options.earlier_log());
  if (training.started) training.started();
  const std::exception_ptr failure =
      failure_of([&] { run_steps(trainer, training.files, training.parts, log, training.interrupt, training.hooks); });
  if (failure) trainer.ranks().failed(message_of(failure));
  if (!trainer.ranks().is_first()) {
    if (failure) std::rethrow_exception(failure);
    return interrupted;  // the first one ends the training
  }
  trainer.ranks().others_end();
  if (failure && trainer.has_diverged() && trainer.best_step() == 0) end_training(failure, {[&] { log.end(); }});
  if (trainer.steps_done() == done_before && !trainer.finished()) {  // the files stay as they are
    if (failure) std::rethrow_exception(failure);
    print_stopped(trainer, training.files, log, training.command, false);
    return interrupted;
  }
  const auto take_place = [&] { training.files.take_place(trainer, training.parts); };
  const auto report = [&] {
    const Score score = training.report();
    log.score(trainer.steps_done(), score.name, score.value);
  };
  const auto save = [&] {
    save_model(trainer, training.files, training.parts, log, training.command, failure != nullptr);
  };
  const auto write_figures = [&] {
    if (training.write_figures) training.write_figures();
  };
  // The state first: `report` puts the best or averaged parameters in place of those to train on with.
  end_training(failure, {take_place, report, save, write_figures});
  return trainer.finished() ? done : interrupted;
}

}  // namespace orrery
