// Chapter 9. The loop of every training program.
//
// Serves: apps/toy/toy.cpp
#include "apps/training/run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/command.h"
#include "apps/program/option_file.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"

namespace orrery {
namespace {

std::string evaluation_line(const std::string& name, i64 step, double loss, bool best) {
  std::ostringstream line;
  line << "step " << step << ": " << name << ' ' << std::fixed << std::setprecision(4) << loss
       << (best ? ", the lowest so far" : "");
  return line.str();
}

// Samples may hold bytes that are not UTF-8, and JSON must be.
std::string as_utf8(const Json& line) { return line.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Whether a file ends within a line, as that of a killed program may.
bool ends_within_line(const AppendedFile& file) {
  const u64 size = file.size();
  return size > 0 && file.read(size - 1, 1) != "\n";
}

// Whether a file holds something other than a log. Such a file must not be written over.
bool holds_something_else(const AppendedFile& file) {
  constexpr std::string_view start = R"({"start":)", step = R"({"step":)";
  const std::string begin = file.read(0, std::min<u64>(file.size(), start.size()));
  return !begin.empty() && begin != start && !begin.starts_with(step);
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

}  // namespace

TrainingLog::TrainingLog(const std::string& path, bool continues)
    : path_(path), continues_(continues), start_(steady_seconds()) {
  if (path.empty()) return;
  file_.emplace(path);
  check(!holds_something_else(*file_), "log", path, " is not a training log; name another file, or remove it");
}

void TrainingLog::write(const std::string& line) {
  if (!used()) return;  // an earlier line could not be written, as `end` will say
  try {
    file_->append(line + '\n');
  } catch (const Error& error) {
    problem_ = error.what();
    file_.reset();
  }
}

void TrainingLog::end() {
  try {
    if (file_) file_->close();
  } catch (const Error& error) { problem_ = error.what(); }
  file_.reset();
  check(problem_.empty(), "log", path_, " is not whole: ", problem_);
}

void TrainingLog::start(const Trainer& trainer, const std::string& options) {
  if (!used()) return;
  if (!continues_) file_->clear();
  if (ends_within_line(*file_)) write("");
  Json line{{"start", trainer.task().program()},
            {"after_step", trainer.steps_done()},
            {"steps", trainer.recipe().steps},
            {"parameters", trainer.parameter_count()}};
  if (!options.empty()) line["options"] = parse_json_object(options, "options of the training");
  write(as_utf8(line));
}

void TrainingLog::plan(const Trainer& trainer, const std::string& options) {
  if (!used()) return;
  Json line{{"step", trainer.steps_done()}, {"steps", trainer.recipe().steps}};
  if (!options.empty()) line["options"] = parse_json_object(options, "options of the training");
  write(as_utf8(line));
}

void TrainingLog::step(i64 step, const StepResult& result) {
  if (!used()) return;
  tokens_ += result.tokens;
  left_out_ = {step, result, steady_seconds() - start_};
  if (step == 1 || left_out_->seconds - last_ >= 0.1) write_left_out();
}

void TrainingLog::write_left_out() {
  if (!used() || !left_out_) return;
  const auto& [step, result, seconds] = *left_out_;
  Json line{{"step", step}, {"loss", result.loss}, {"rate", result.rate}};
  if (seconds > last_) line["tokens_per_s"] = std::llround(static_cast<double>(tokens_) / (seconds - last_));
  line["seconds"] = std::round(seconds * 1000) / 1000;
  write(line.dump());
  last_ = seconds, tokens_ = 0;
  left_out_.reset();
}

void TrainingLog::evaluation(i64 step, double loss, bool best) {
  write_left_out();
  if (!used()) return;
  write(Json{{"step", step},
             {"validation", loss},
             {"best", best},
             {"seconds", std::round((steady_seconds() - start_) * 1000) / 1000}}
            .dump());
}

void TrainingLog::sample(i64 step, const std::string& text) {
  if (used()) write(as_utf8(Json{{"step", step}, {"sample", text}}));
}

void TrainingLog::score(i64 step, const std::string& name, double value) {
  if (used()) write(Json{{"step", step}, {"score", name}, {"value", value}}.dump());
}

Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks) {
  files.check_texts(trainer, parts);
  const TrainingRecipe& recipe = trainer.recipe();
  Progress progress(std::cerr, terminal_of(STDERR_FILENO), recipe.steps, trainer.steps_done());
  progress.set_limit(60 * recipe.minutes);
  const double start = steady_seconds();
  std::optional<double> validation;
  i64 kept_step = trainer.steps_done();  // without a step there is nothing to keep
  const auto keep = [&](const std::string& otherwise) {
    if (files.keep(trainer, parts)) return void(kept_step = trainer.steps_done());
    progress.note("not saved: " + files.problem() + "; " + otherwise);
  };
  log.start(trainer, options_in(parts));
  Ending ending = Ending::finished;
  while (!trainer.finished()) {
    if (recipe.minutes > 0 && steady_seconds() - start >= 60 * recipe.minutes) ending = Ending::out_of_time;
    if (interrupt.requested()) ending = Ending::stopped;
    if (ending != Ending::finished) break;
    const StepResult result = trainer.step();
    const i64 step = trainer.steps_done();
    const i64 planned = recipe.steps;
    if (hooks.after_step) hooks.after_step(result);
    if (recipe.steps != planned) log.plan(trainer, options_in(parts));
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
      keep("the training continues");  // otherwise the last saved state is better, and the next step reports why
  }
  log.write_left_out();
  if (!log.problem().empty()) progress.note("the log is not whole: " + log.problem());
  if (ending != Ending::finished && kept_step != trainer.steps_done())  // stopped between two evaluations
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

void save_model(const Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed) {
  files.end(parts, trainer.finished());
  files.check_kept();
  if (files.used()) std::cerr << "saved to " << harmless(files.model()) << '\n';
  if (!trainer.finished()) print_stopped(trainer, files, command, failed);
  log.end();
}

void print_stopped(const Trainer& trainer, const TrainingFiles& files, const std::string& command, bool failed) {
  std::cerr << "stopped after step " << trainer.steps_done() << " of " << trainer.recipe().steps;
  if (!files.used()) std::cerr << "; without --save it cannot be resumed";
  // A step that failed would fail again.
  std::error_code unknown;
  if (!failed && trainer.steps_done() > 0 && std::filesystem::exists(files.resume(), unknown))
    std::cerr << "; to resume: " << command << " --resume " << harmless(shell_quoted(files.model()));
  std::cerr << std::endl;
}

}  // namespace orrery
