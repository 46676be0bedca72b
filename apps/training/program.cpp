// Chapter 9. The training program: from its options to its last line.
#include "apps/training/program.h"

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/terminal.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

// What the files of a training hold besides its state.
SavedParts saved_parts_of(const TrainingProgram& program, nn::Module& module) {
  Metadata of_model = program.of_model(), of_training = program.of_training();
  of_model[options_key] = of_training[options_key] = program.options;
  return {.save_model = [&module, of_model](const std::string& path) { nn::save(module, path, of_model); },
          .origin = of_training,
          .model_bytes = nn::saved_bytes(module)};
}

// Ends the training in time, and keeps what that changes about it in its files.
std::function<void(const StepResult&)> ending_in_time(TrainingProgram& program, Trainer& trainer, nn::Module& module,
                                                      SavedParts& parts) {
  return [&](const StepResult& step) {
    program.after_step(step);
    const i64 planned = trainer.recipe().steps;
    const bool settled = program.deadline->settles(trainer);
    if (!settled && trainer.recipe().steps == planned) return;
    Json options = parse_json_object(program.options, program.program());
    options["steps"] = trainer.recipe().steps;
    options["cooldown"] = trainer.recipe().cooldown;
    program.options = json_text(options, 2);
    parts = saved_parts_of(program, module);
  };
}

RunHooks hooks_of(TrainingProgram& program, Trainer& trainer, nn::Module& module, SavedParts& parts) {
  RunHooks hooks{.after_evaluation =
                     [&] {
                       std::string line;
                       trainer.with_judged([&] { line = program.sample(); });
                       return line;
                     },
                 .after_step = [&](const StepResult& step) { program.after_step(step); }};
  if (program.deadline) {
    hooks.after_step = ending_in_time(program, trainer, module, parts);
    hooks.planned_seconds = program.deadline->seconds_left();
    hooks.is_out_of_time = [&deadline = *program.deadline] { return deadline.overslept(); };
  }
  return hooks;
}

// Seconds from now to the end of the command: what is left of --minutes, or an estimate from the time of a step.
double seconds_to_come(TrainingProgram& program, Trainer& trainer) {
  if (program.deadline) return program.deadline->seconds_left() + program.afterwards;
  const Phase phase("timing a step");
  const double step = trainer.seconds_of_step();
  return trainer.expected_seconds(step) + program.seconds_afterwards(step);
}

// "a, b, c and 12 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t most = 5;
  if (names.size() <= most) return listed(names);
  return listed({names.begin(), names.begin() + most}) + " and " + std::to_string(names.size() - most) + " more";
}

// Gives the model the weights of --init that fit, and says which do not.
void start_from(const std::string& path, nn::Module& module) {
  const nn::Loaded loaded = nn::load(module, path, {.partial = true});
  std::cerr << "starting from " << harmless(path) << '\n';
  if (!loaded.missing.empty()) std::cerr << "  not in it: " << harmless(some_of(loaded.missing)) << '\n';
  if (!loaded.left_over.empty()) std::cerr << "  left over: " << harmless(some_of(loaded.left_over)) << '\n';
}

int train(TrainingProgram& program, TrainingFiles& files, const TrainingState* state) {
  const Interrupt interrupt;
  std::optional<Phase> phase("making the model");
  Task& task = program.build();
  nn::Module& module = task.module();
  task.recipe().minutes = program.run.time_limit;
  files.check_room(task.recipe(), module.parameter_count());
  if (!state && !program.run.init.empty()) start_from(program.run.init, module);
  Trainer trainer(task);
  if (state) trainer.load_state(*state);
  phase.reset();
  program.announce();
  SavedParts parts = saved_parts_of(program, module);
  return run_training({.command = program.command(),
                       .trainer = trainer,
                       .files = files,
                       .parts = parts,
                       .options = program.run,
                       .interrupt = interrupt,
                       .expected_seconds = seconds_to_come(program, trainer),
                       .hooks = hooks_of(program, trainer, module, parts),
                       .report = [&] { return program.report(trainer); },
                       .write_figures = [&] { program.write_figures(); }});
}

// The command that trains the same as the program did. Of its options, some were chosen by --minutes; `before` are all
// of them before that.
std::string command_of(const TrainingProgram& program, const std::string& before) {
  std::string command = program.command();
  std::vector<CLI::Option*> given = program.run.deciding;
  std::erase_if(given, [](const CLI::Option* option) { return !is_given(option); });
  const Json typed = values_of(given), values = parse_json_object(program.options, program.program()),
             earlier = parse_json_object(before, program.program());
  for (const auto& [name, value] : values.items()) {
    if (earlier.contains(name) && earlier.at(name) == value && !typed.contains(name)) continue;
    if (value.is_array())
      for (const Json& file : value) command += ' ' + shell_quoted(file.get<std::string>());
    else if (name == "FILE")
      command += ' ' + shell_quoted(value.get<std::string>());
    else if (value.is_boolean())
      command += (value.get<bool>() ? " --" : " --no-") + name;
    else
      command += " --" + name + ' ' + (value.is_string() ? shell_quoted(value.get<std::string>()) : value.dump());
  }
  return command;
}

int begin(TrainingProgram& program) {
  program.settle();
  if (program.run.print_config) return print_config(program.run);
  program.check_given();
  TrainingFiles files(program.program(), program.run.save);
  check_outputs(program.run, files, program.texts(), program.figures());
  files.begin(program.run.overwrite);
  program.run.check_earlier_log();
  program.read(nullptr);
  const std::string before = program.run.chosen();
  program.choose();
  program.options = program.run.chosen();
  const int exit_code = train(program, files, nullptr);
  if (program.deadline && exit_code == done)
    std::cerr << "the same again: " << harmless(command_of(program, before)) << '\n';
  if (exit_code == done) program.end();
  return exit_code;
}

int resume(TrainingProgram& program) {
  TrainingFiles files(program.program(), program.run.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished(program.program(), files);
  program.options = entry_of(unfinished, program.program(), options_key);
  take_values(program.run.deciding, program.options, "load " + unfinished.path, [&] { program.settle(); });
  program.recipe() = unfinished.recipe;
  check_outputs(program.run, files, program.texts(), program.figures());
  program.run.check_earlier_log();
  program.read(&unfinished);
  compute_as(unfinished);
  const int exit_code = train(program, files, &unfinished.state);
  if (exit_code == done) program.end();
  return exit_code;
}

}  // namespace

Score TrainingProgram::report(Trainer& trainer) {
  const std::string hash = trainer.hash();
  trainer.end_with_best();
  const std::vector<Score> scores = [&] {
    const Phase phase("judging the model");
    return trainer.task().evaluate();
  }();
  if (run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4);
  for (const Score& score : scores) std::cout << score.name << ' ' << score.value << "  ";
  std::cout << "in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
  return scores.at(0);
}

void add_training(CLI::App& parent, int& exit_code, const std::shared_ptr<TrainingProgram>& program,
                  const std::string& name, const std::string& description, const std::string& footer) {
  CLI::App& command = add_command(parent, name, description, footer);
  RunOptions& run = program->run;
  add_config(command, run.config, run.deciding);
  run.deciding = added_by(command, [&] { program->add_options(command); });
  const RunOptionHandles handles = add_run_options(command, run, program->text_options);
  program->add_other_options(command, handles);
  when_run(command, exit_code, [program] {
    program->watch = Stopwatch();
    set_up(program->run);
    if (const std::optional<int> other = program->instead()) return *other;
    return program->run.resume.empty() ? begin(*program) : resume(*program);
  });
}

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

}  // namespace orrery
