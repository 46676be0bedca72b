// Chapter 9. The training program: from its options to its last line.
#include "apps/training/program.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/data/text_data.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/terminal.h"
#include "nn/files/files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

const std::string origin_key = "origin";  // in the metadata of FILE.resume

// What the files of a training hold besides its state.
SavedParts saved_parts_of(const TrainingProgram& program, nn::Module& module) {
  Metadata of_model = program.of_model();
  of_model[options_key] = program.options;
  Metadata of_training = of_model;
  if (!program.origin.empty()) of_training[origin_key] = program.origin;
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
                       const bool is_best = trainer.best_step() == trainer.steps_done();
                       trainer.with_judged([&] { line = program.sample(is_best); });
                       return line;
                     },
                 .after_step = [&](const StepResult& step) { program.after_step(step); }};
  if (program.deadline) {
    hooks.after_step = ending_in_time(program, trainer, module, parts);
    if (!program.deadline->ends_early(trainer)) hooks.planned_seconds = program.deadline->seconds_left();
    hooks.is_out_of_time = [&deadline = *program.deadline] { return deadline.overslept(); };
  }
  return hooks;
}

// Seconds from now to the end of the command: what is left of --minutes, or an estimate from the time of a step.
double seconds_to_come(TrainingProgram& program, Trainer& trainer) {
  if (program.deadline && !program.deadline->ends_early(trainer))
    return program.deadline->seconds_left() + program.afterwards;
  const Phase phase("timing a step");
  const double step = trainer.seconds_of_step();
  return trainer.expected_seconds(step) + program.seconds_afterwards(step);
}

struct Texts {
  std::vector<std::string> roles, paths;
  std::vector<u32> checksums;
};

// The texts that an unfinished training began with.
Texts texts_of(const UnfinishedTraining& unfinished, const std::string& program) {
  const std::string& origin = entry_of(unfinished, program, origin_key);
  Texts texts;
  within("load " + unfinished.path, [&] {
    const Json json = parse_json_object(origin, "training origin");
    check(json.contains("roles"), "training origin",
          "it was made by an earlier version, which this one does not continue; begin anew with --init ",
          unfinished.path.substr(0, unfinished.path.rfind(".resume")));
    nn::config_json::Reader read("training origin", json, nn::config_json::Fields::all);
    read("roles", texts.roles);
    read("texts", texts.paths);
    read("checksums", texts.checksums, 0, std::numeric_limits<u32>::max());
    read.check_all_known();
    check(texts.roles.size() == texts.checksums.size(), "training origin", "it has ", texts.checksums.size(),
          " checksums for ", texts.roles.size(), " texts");
  });
  return texts;
}

// The texts that are learned from, with their checksums; and for a training that is resumed an error: it began with
// others.
void note_texts(TrainingProgram& program, const UnfinishedTraining* unfinished) {
  const std::vector<NamedFile> texts = program.texts();
  if (texts.empty()) return;
  Texts now;
  for (const NamedFile& text : texts) {
    const Phase phase("reading " + text.path);
    now.roles.push_back(text.name);
    now.paths.push_back(text.path);
    now.checksums.push_back(checksum_of({text.path}));
  }
  program.origin = json_text({{"texts", now.paths}, {"roles", now.roles}, {"checksums", now.checksums}});
  if (!unfinished) return;
  const Texts kept = texts_of(*unfinished, program.program());
  const size_t count = std::min(kept.roles.size(), texts.size());
  check(texts.size() <= count, program.program(), "this training began without ", texts.back().name, ' ',
        texts.back().path);
  check(kept.roles.size() <= count, program.program(), "this training began with ", kept.roles.back(), ' ',
        kept.paths.back(), ", too");
  for (size_t i = 0; i < count; ++i) {
    check(kept.checksums[i] == now.checksums[i], program.program(), texts[i].path,
          " is not the text that this training began with");
    check(kept.roles[i] == now.roles[i], program.program(), "this training began with ", kept.roles[i], ' ',
          kept.paths[i], ", which is now given as ", now.roles[i]);
  }
}

Task& built(TrainingProgram& program) {
  check_parameters_fit(program.program(), program.expected_parameters());
  return program.build();
}

// What --minutes chooses.
void choose(TrainingProgram& program) {
  const double whole = 60 * program.minutes, left = whole - program.ranks->first(program.watch.seconds());
  check(left > 0, program.program(), "--minutes leaves no time to train: reading the text took ",
        std::llround(program.watch.seconds()), " s");
  Ranks& ranks = *program.ranks;
  TimeBudget budget(
      program.program(), left, [&] { return Trainer(built(program), ranks).seconds_of_step(); },
      [&] { return ranks.first(steady_seconds()); });
  budget.micro_batches = ranks.size();
  {
    const Phase phase("timing a few steps");
    program.fit(budget);
  }
  std::cerr << "chosen: " << budget.chosen << '\n';
  program.afterwards = budget.afterwards;
  program.deadline.emplace(
      whole + budget.slept - budget.afterwards,
      [&ranks, watch = program.watch] { return ranks.first(watch.seconds()); }, budget.most_steps);
}

// Gives the model the weights of --init that fit, and says which do not. Error: some that must fit do not.
void start_from(TrainingProgram& program, nn::Module& module) {
  constexpr size_t most_shown = 5;
  const std::string& path = program.run.init;
  const nn::Loaded loaded = nn::load(module, path, {.partial = true});
  const auto may_lack = [&](const std::string& name) { return program.may_lack(name); };
  if (!std::all_of(loaded.missing.begin(), loaded.missing.end(), may_lack) ||
      !std::all_of(loaded.left_over.begin(), loaded.left_over.end(), may_lack))
    nn::load(module, path);  // its error says what is missing
  std::cerr << "starting from " << harmless(path) << '\n';
  if (!loaded.missing.empty()) std::cerr << "  not in it: " << harmless(some_of(loaded.missing, most_shown)) << '\n';
  if (!loaded.left_over.empty())
    std::cerr << "  left over: " << harmless(some_of(loaded.left_over, most_shown)) << '\n';
  program.started();
}

int train(TrainingProgram& program, TrainingFiles& files, const TrainingState* state) {
  const Interrupt interrupt(program.ranks->is_first());
  std::optional<Phase> phase("making the model");
  Task& task = built(program);
  nn::Module& module = task.module();
  task.recipe().minutes = program.run.time_limit;
  files.check_room(task.recipe(), module.parameter_count());
  if (!state && !program.run.init.empty()) start_from(program, module);
  Trainer trainer(task, *program.ranks);
  if (state) trainer.load_state(*state);
  phase.reset();
  check_alike(program, trainer);
  program.announce();
  SavedParts parts = saved_parts_of(program, module);
  return run_training({.command = program.command(),
                       .trainer = trainer,
                       .files = files,
                       .parts = parts,
                       .options = program.run,
                       .interrupt = interrupt,
                       .expected_seconds = seconds_to_come(program, trainer),
                       .started = [&] { share_warnings(*program.ranks); },
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
  give_each_rank_a_batch(program);
  program.settle();
  if (program.run.print_config) return print_config(program.run);
  program.check_given();
  TrainingFiles files(program.program(), program.run.save);
  program.ranks->first_does([&] {
    check_outputs(program.run, files, program.texts(), program.figures());
    files.begin(program.run.overwrite);
    program.run.check_earlier_log();
  });
  note_texts(program, nullptr);
  const std::string& init = program.run.init;
  program.read(init, init.empty() ? Metadata() : read_safetensors_metadata(init));
  const std::string before = program.run.chosen();
  if (program.minutes > 0) choose(program);
  program.options = program.run.chosen();
  const int exit_code = train(program, files, nullptr);
  if (program.deadline && exit_code == done)
    std::cerr << "the same again: " << harmless(command_of(program, before)) << '\n';
  if (exit_code == done) program.end();
  return exit_code;
}

int resume(TrainingProgram& program) {
  TrainingFiles files(program.program(), program.run.resume), none(program.program(), "");
  program.ranks->first_does([&] { files.go_on(); });
  const UnfinishedTraining unfinished = read_unfinished(program.program(), files);
  program.options = entry_of(unfinished, program.program(), options_key);
  take_values(program.run.deciding, program.options, "load " + unfinished.path, [&] { program.settle(); });
  program.recipe() = unfinished.recipe;
  program.ranks->first_does([&] {
    check_outputs(program.run, files, program.texts(), program.figures());
    program.run.check_earlier_log();
  });
  note_texts(program, &unfinished);
  program.read(unfinished.path, unfinished.metadata);
  nn::check_size(program.expected_parameters(), unfinished.path);
  compute_as(unfinished);
  const int exit_code = train(program, program.ranks->is_first() ? files : none, &unfinished.state);
  if (exit_code == done) program.end();
  return exit_code;
}

void add_minutes(CLI::App& command, TrainingProgram& program, const RunOptionHandles& handles) {
  std::vector<CLI::Option*> fitted = program.also_fitted;
  const std::vector<std::string> fields = field_names(program.recipe());
  for (CLI::Option* option : program.run.deciding) {
    std::string name = typed_name(option).substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (std::find(fields.begin(), fields.end(), name) != fields.end()) fitted.push_back(option);
  }
  begin_group(command, training_group);
  CLI::Option* minutes =
      add_number(command, "--minutes", program.minutes, 0.1, 1e6,
                 "Choose " + program.fitted +
                     " so that all is done in this many minutes on this machine, and print the command that trains "
                     "the same again");
  show_default(minutes, "");
  exclude(minutes, fitted);
  exclude(minutes, {handles.resume, handles.print_config});
}

}  // namespace

// At most ten evaluations, in a twentieth of the time. After the last step the task is judged once more.
void TrainingProgram::fit(TimeBudget& budget) {
  const std::optional<KnownTraining> known = known_training();
  if (known) {
    budget.follow(*known, recipe());
  } else {
    const TrainingRecipe& described = build().recipe();  // with the model's width
    TimeBudget::let_rate_fall(recipe(), described.rate_of(std::max<i64>(1, described.warmup)));
  }
  TimeBudget::Times times{budget.step()};
  Trainer trainer(build(), *ranks);
  double evaluations = 0;
  if (recipe().evaluate_every != 0) {
    times.evaluation = trainer.seconds_of_evaluation();
    evaluations = std::clamp(TimeBudget::for_evaluations * budget.seconds() / times.evaluation, 1.0, 10.0);
  }
  const double alone = times.evaluation * static_cast<double>(ranks->size());  // of the last one, by rank 0
  times.afterwards = alone + ranks->first(seconds_afterwards(times.step));
  budget.plan(recipe(), times, static_cast<i64>(evaluations));
}

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
  add_minutes(command, *program, handles);
  begin_group(command, "Run");
  program->add_other_options(command, handles);
  when_run(command, exit_code, [program, threads = handles.threads] {
    program->watch = Stopwatch();
    const auto train = [&] {
      set_up(program->run);
      if (const std::optional<int> other = program->instead()) return *other;
      return program->run.resume.empty() ? begin(*program) : resume(*program);
    };
    return program->run.ranks ? run_on_ranks(*program, is_given(threads), train) : train();
  });
}

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

}  // namespace orrery
