// Chapter 9. Tests of a training from its first line to its last: evaluations, files, the log, and how it ends.
#include "apps/training/run.h"

#include <doctest/doctest.h>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "apps/program/command.h"
#include "apps/program/option_file.h"
#include "apps/program/output_file.h"
#include "core/files/safetensors.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::line_recipe;
using small::LineRun;
using small::LineTraining;

TEST_CASE("a training makes its steps, evaluates when it is due, says so, and keeps the best") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.5, 0.25, 0.75, 0.3};
  std::vector<double> losses;
  double a_at_6 = 0;
  run.go({.after_evaluation =
              [&] {
                if (run.training.trainer.steps_done() == 6) a_at_6 = run.a();
                return run.training.trainer.steps_done() == 9 ? "a line at nine" : "";
              },
          .after_step = [&](const StepResult& result) { losses.push_back(result.loss); }});
  CHECK(run.ending == Ending::finished);
  CHECK(run.problem == "");
  CHECK(losses == run.training.trainer.losses());
  CHECK(losses.size() == 12);
  CHECK(small::contains(run.heard, "step 3: validation loss 0.5000, the lowest so far\n"));
  CHECK(small::contains(run.heard, "step 6: validation loss 0.2500, the lowest so far\n"));
  CHECK(small::contains(run.heard, "step 9: validation loss 0.7500\na line at nine\n"));
  CHECK(small::contains(run.heard, "step 12: validation loss 0.3000\n"));
  CHECK(small::contains(run.heard, "step  2/12  loss "));
  CHECK_FALSE(small::contains(run.heard.substr(0, run.heard.find("step 3: ")), "  validation "));
  CHECK(small::contains(run.heard, "  validation 0.5000  rate "));
  CHECK(small::contains(run.heard.substr(run.heard.find("step 9: ")), "  validation 0.7500  rate "));
  CHECK(run.saved_a() == a_at_6);
  CHECK(std::filesystem::exists(run.files.resume()));
  run.save();
  CHECK(run.saved_a() == a_at_6);
  CHECK(run.heard.ends_with("saved to " + run.files.model() + "\n"));
  CHECK_FALSE(std::filesystem::exists(run.files.resume()));
}

TEST_CASE("the first of several scores judges, in its direction, and the others stand beside it, in the log too") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {20, 41.5, 41, 40};
  run.training.task.better = Better::higher;
  run.training.task.score_name = "BLEU";
  run.training.task.second_score = "validation loss";
  run.go({}, folder / "log");
  CHECK(run.problem == "");
  CHECK(small::contains(run.heard, "step 6: BLEU 41.5000, the highest so far; validation loss 0.1250\n"));
  CHECK(small::contains(run.heard, "step 9: BLEU 41.0000; validation loss 0.1250\n"));
  CHECK(small::contains(run.heard, " points/s"));
  CHECK_FALSE(small::contains(run.heard, " tokens/s"));
  CHECK(run.training.trainer.best_step() == 6);
  const std::string log = contents(folder / "log");
  CHECK(small::contains(log, "{\"step\":6,\"validation\":41.5,\"best\":true,"));
  CHECK(small::contains(log, ",\"scores\":{\"validation loss\":0.125}}\n"));
}

TEST_CASE("what could not be saved ends a training before its first step, and an older log stays") {
  const TemporaryFolder folder;
  const std::string log = folder / "log", old = "{\"start\":\"line\"}\n";
  set_contents(log, old);
  LineRun run(folder / "line");
  run.parts.origin = {{"vocabulary", std::string(200'000, 'x')}};
  run.go({}, log, TrainingLog::Earlier::replaced);
  CHECK(small::contains(run.problem, "too small to be saved with its vocabulary"));
  CHECK(run.training.trainer.steps_done() == 0);
  CHECK(contents(log) == old);
  CHECK_FALSE(std::filesystem::exists(run.files.model()));
}

TEST_CASE("a log that cannot be begun is an error, and one that cannot be continued is told, and nothing stops") {
  LineRun nowhere(""), full("");
  nowhere.go({}, "/nowhere/log");
  CHECK(nowhere.problem == "write /nowhere/log: No such file or directory");
  CHECK(nowhere.training.trainer.steps_done() == 0);
  full.go({}, "/dev/full");
  CHECK(full.problem == "");
  CHECK(full.training.trainer.steps_done() == 12);
  CHECK(small::contains(full.heard, "the log is not whole: write /dev/full: No space left on device\n"));
}

TEST_CASE("a log that is not whole fails the training at its end, after the model is saved") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  TrainingLog full("/dev/full", TrainingLog::Earlier::kept);
  run.go();
  full.score(12, "exact match", 0.5);  // the last line, after all steps
  CHECK(full.problem() == "write /dev/full: No space left on device");
  run.listen([&] { save_model(run.training.trainer, run.files, run.parts, full, "orrery line", false); });
  CHECK(run.heard.ends_with("saved to " + run.files.model() + "\n"));
  CHECK(run.problem == "log: /dev/full is not whole: write /dev/full: No space left on device");
  CHECK(run.saved_a() == run.a());
}

TEST_CASE("patience ends a training, which is then finished") {
  const TemporaryFolder folder;
  TrainingRecipe recipe = line_recipe();
  recipe.patience = 2;
  LineRun run(folder / "line", recipe);
  run.training.task.validation = {0.5, 0.6, 0.7, 0.1};
  run.go();
  CHECK(run.ending == Ending::out_of_patience);
  CHECK(run.training.trainer.steps_done() == 9);
  CHECK(run.heard.ends_with("the last 2 evaluations were not the best: the training ends\n"));
  run.training.trainer.end_with_best();
  run.save();
  CHECK_FALSE(std::filesystem::exists(run.files.resume()));
  CHECK_FALSE(small::contains(run.heard, "stopped after"));
}

TEST_CASE("Ctrl-C and the time limit stop a training, save it, and say how to resume it, to the same bits") {
  const TemporaryFolder folder;
  for (const bool limited : {false, true}) {
    CAPTURE(limited);
    TrainingRecipe recipe = line_recipe();
    recipe.evaluate_every = 1000;
    recipe.steps = 100000000;
    if (limited) recipe.minutes = 0.02 / 60;
    LineRun run(folder / (limited ? "a limited one" : "stopped"), recipe);
    run.go({.after_step = [&](const StepResult&) {
      if (!limited && run.training.trainer.steps_done() == 5) std::raise(SIGINT);
    }});
    CHECK(run.ending == (limited ? Ending::out_of_time : Ending::stopped));
    CHECK(small::contains(run.heard, "the time limit is reached") == limited);
    const i64 done = run.training.trainer.steps_done();
    if (!limited) CHECK(done == 5);
    CHECK(done > 0);
    run.save();
    CHECK(small::contains(run.heard, "stopped after step " + std::to_string(done) +
                                         " of 100000000; to resume: orrery line --resume " +
                                         shell_quoted(run.files.model()) + "\n"));
    const UnfinishedTraining unfinished = read_unfinished("line", run.files);
    CHECK(unfinished.recipe.minutes == 0);
    LineTraining resumed(unfinished.recipe), whole(recipe);
    resumed.trainer.load_state(unfinished.state);
    resumed.trainer.step();
    small::train_until(whole.trainer, done + 1);
    CHECK(resumed.trainer.hash() == whole.trainer.hash());
  }
}

TEST_CASE("a training without a file says that it cannot be resumed, and a failed one does not say how") {
  const TemporaryFolder folder;
  const auto interrupted = [](LineRun& run) {
    run.go({.after_step = [&](const StepResult&) {
      if (run.training.trainer.steps_done() == 4) std::raise(SIGTERM);
    }});
  };
  LineRun unsaved(""), failed(folder / "line");
  interrupted(unsaved);
  interrupted(failed);
  unsaved.save();
  failed.save(true);
  CHECK(small::contains(unsaved.heard, "stopped after step 4 of 12; without --save it cannot be resumed\n"));
  CHECK(failed.heard.ends_with("stopped after step 4 of 12\n"));
}

TEST_CASE("a save that fails is told, and the training goes on and saves what it can later") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.2, 0.5, 0.6, 0.7};
  const auto save = run.parts.save_model;
  int saves = 0;
  double a_at_3 = 0;
  run.parts.save_model = [&](const std::string& path) {
    check(++saves > 1, "write line", "No space left on device");
    save(path);
  };
  run.go({.after_evaluation = [&] {
    if (run.training.trainer.steps_done() == 3) a_at_3 = run.a();
    return "";
  }});
  CHECK(run.ending == Ending::finished);
  CHECK(small::contains(run.heard, "not saved: write line: No space left on device; the training continues\n"));
  CHECK(saves == 2);
  CHECK(run.saved_a() == a_at_3);
  run.parts.save_model = [](const std::string&) { fail("write line", "still none"); };
  run.save();
  CHECK(run.problem == "line: the model is not saved: write line: still none");
  CHECK(run.saved_a() == a_at_3);
}

TEST_CASE("a stop at an evaluation that is not finite leaves the last good state") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.5, NAN, 0, 0};
  run.go({.after_step = [&](const StepResult&) {
    if (run.training.trainer.steps_done() == 6) std::raise(SIGTERM);
  }});
  CHECK(run.ending == Ending::stopped);
  CHECK(read_unfinished("line", run.files).state.steps_done == 3);
}

TEST_CASE("where the last state could not be saved, a stop says from which step the training is resumed") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  const std::string in_the_way = run.files.resume() + ".tmp";
  run.go({.after_step = [&](const StepResult&) {
    if (run.training.trainer.steps_done() != 5) return;
    std::filesystem::create_directory(in_the_way);  // the state cannot be written
    std::raise(SIGTERM);
  }});
  CHECK(small::contains(run.heard, "; the training cannot be resumed from this step\n"));
  std::filesystem::remove(in_the_way);
  run.save();
  CHECK(small::contains(run.heard, "stopped after step 5 of 12; to resume from step 3: orrery line --resume "));
}

TEST_CASE("a step that is not finite ends a training, and what was saved before it stays") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.5, NAN, 0, 0};
  double a_at_3 = 0;
  run.go({.after_evaluation =
              [&] {
                if (run.training.trainer.steps_done() == 3) a_at_3 = run.a();
                return "";
              },
          .after_step =
              [&](const StepResult&) {
                if (run.training.trainer.steps_done() == 6)
                  run.training.task.b.mutable_value().write<double>()[0] = NAN;
              }});
  CHECK(run.problem.starts_with("line: step 7 was not made, because a number is not finite"));
  CHECK(small::contains(run.heard, "step 6: validation loss nan\n"));
  CHECK(run.saved_a() == a_at_3);
  CHECK(read_unfinished("line", run.files).state.steps_done == 3);
}

TEST_CASE("a training is ended in order: reported, then saved, whatever fails, and each failure is told") {
  const auto ended = [](const std::string& training, const std::string& report, const std::string& save) {
    std::string order;
    const auto part = [&](const std::string& name, const std::string& error) {
      return [&order, name, error] {
        order += name + " ";
        check(error.empty(), "test", error);
      };
    };
    const auto failure = failure_of(part("train", training));
    const std::ostringstream told;
    std::streambuf* const stderr_buffer = std::cerr.rdbuf(told.rdbuf());
    const std::string error = small::error_of([&] {
      end_training(failure, {part("report", report), part("save", save), part("figures", "")});
    });
    std::cerr.rdbuf(stderr_buffer);
    return order + told.str() + error;
  };
  CHECK(ended("", "", "") == "train report save figures ");
  CHECK(ended("", "", "disk") == "train report save figures test: disk");
  CHECK(ended("", "memory", "disk") == "train report save figures another failure: test: disk\ntest: memory");
  CHECK(ended("nan", "memory", "") == "train report save figures another failure: test: memory\ntest: nan");
  CHECK(ended("nan", "", "disk") == "train report save figures another failure: test: disk\ntest: nan");
}

namespace {

// A line that is trained from its first line to its last; what was called is in `called`.
struct WholeRun {
  explicit WholeRun(const std::string& path, const TrainingRecipe& recipe = small::line_recipe())
      : line(path, recipe) {}
  void go(const std::function<void()>& report = [] {}) {
    const Interrupt interrupt;
    if (stopped_at_once) std::raise(SIGINT);
    line.listen([&] {
      exit_code = run_training({.command = "orrery line",
                                .trainer = line.training.trainer,
                                .files = line.files,
                                .parts = line.parts,
                                .options = options,
                                .interrupt = interrupt,
                                .hooks = hooks,
                                .report =
                                    [&] {
                                      called += "report ";
                                      report();
                                      line.training.trainer.end_with_best();
                                      return Score{"distance", 0.25};
                                    },
                                .write_figures = [&] { called += "figures "; }});
    });
  }

  LineRun line;
  RunHooks hooks;
  RunOptions options;
  std::string called;
  bool stopped_at_once = false;
  int exit_code = -1;
};

}  // namespace

TEST_CASE("a training goes from its first line to its last, and one that is resumed says so") {
  const TemporaryFolder folder;
  WholeRun first(folder / "line");
  first.hooks.after_step = [&](const StepResult&) {
    if (first.line.training.trainer.steps_done() == 5) std::raise(SIGINT);
  };
  first.go();
  CHECK(first.exit_code == interrupted);
  CHECK(first.called == "report figures ");
  CHECK(small::contains(first.line.heard, "model of 2 parameters\n"));
  CHECK_FALSE(small::contains(first.line.heard, "resuming"));
  CHECK(small::contains(first.line.heard, "stopped after step 5 of 12; to resume: orrery line --resume "));
  WholeRun resumed(folder / "line");
  resumed.line.files.go_on();
  resumed.line.training.trainer.load_state(read_unfinished("line", first.line.files).state);
  resumed.go();
  CHECK(resumed.exit_code == done);
  CHECK(resumed.called == "report figures ");
  CHECK(small::contains(resumed.line.heard, "resuming after step 5 of 12\n"));
  CHECK(resumed.line.heard.ends_with("saved to " + first.line.files.model() + "\n"));
  CHECK_FALSE(std::filesystem::exists(first.line.files.resume()));
}

TEST_CASE("a training that is stopped before its first step reports and saves nothing") {
  const TemporaryFolder folder;
  WholeRun run(folder / "line");
  run.line.parts.save_model = [&](const std::string&) { run.called += "save "; };
  run.stopped_at_once = true;
  run.go();
  CHECK(run.exit_code == interrupted);
  CHECK(run.called == "");
  CHECK(small::contains(run.line.heard, "stopped after step 0 of 12"));
}

TEST_CASE("a save that fails keeps neither the way to resume from being told, nor the log from being ended") {
  const TemporaryFolder folder;
  LineRun line(folder / "line");
  TrainingLog log(folder / "log", TrainingLog::Earlier::kept);
  log.start(line.training.trainer, "");
  for (i64 step = 1; step <= 2; ++step) log.step(step, line.training.trainer.step());  // the second has no line yet
  REQUIRE(line.files.keep(line.training.trainer, line.parts));
  line.parts.save_model = [](const std::string&) { fail("write", "No space left on device"); };
  line.listen([&] { save_model(line.training.trainer, line.files, line.parts, log, "orrery line", false); });
  CHECK(small::contains(line.problem, "line: the model is not saved: write: No space left on device"));
  CHECK(small::contains(line.heard, "stopped after step 2 of 12; to resume: orrery line --resume "));
  CHECK_FALSE(log.used());
  CHECK(small::contains(contents(folder / "log"), "\n{\"step\":2,"));
}

namespace {

// A line whose loss becomes about nine times as large in each step.
TrainingRecipe diverging_recipe(i64 evaluate_every) {
  TrainingRecipe recipe = small::line_recipe();
  recipe.steps = 40;
  recipe.optimizer = OptimizerKind::sgd;
  recipe.rate = 2;
  recipe.clip = 0;
  recipe.evaluate_every = evaluate_every;
  return recipe;
}

}  // namespace

TEST_CASE("a training that diverges ends with one line; its log and its best model are kept, whatever is asked for") {
  const TemporaryFolder folder;
  WholeRun run(folder / "line", diverging_recipe(3));
  Trainer& trainer = run.line.training.trainer;
  run.line.training.task.guessing = 1;
  run.line.training.task.validation = {0.5, 0.25, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  run.options.log = folder / "log";
  double at_6 = 0;
  run.hooks.after_step = [&](const StepResult&) {
    if (trainer.steps_done() == 6) at_6 = run.line.a();
  };
  run.go([&] {
    trainer.end_with_judged();
    CHECK(run.line.a() == at_6);
  });
  CHECK(trainer.steps_done() < 20);
  CHECK(run.line.problem.starts_with("line: step " + std::to_string(trainer.steps_done()) +
                                     ": the training has diverged, its loss is "));
  CHECK(
      run.line.problem.ends_with("a smaller --rate, a longer --warmup or --clip may help; the best model, of step 6, "
                                 "is kept"));
  CHECK_FALSE(small::contains(run.line.problem, "\n"));
  CHECK(run.called == "report figures ");
  CHECK(run.line.saved_a() == at_6);
  CHECK(small::contains(contents(folder / "log"), "\"validation\":0.25,\"best\":true"));
  CHECK(small::contains(contents(folder / "log"), "\n{\"step\":" + std::to_string(trainer.steps_done()) + ","));
}

TEST_CASE("a training that diverges before its first evaluation saves no model, and an older one stays") {
  const TemporaryFolder folder;
  {
    LineRun older(folder / "line");
    older.go();
    older.save();
  }
  const std::string before = contents(folder / "line");
  WholeRun run(folder / "line", diverging_recipe(0));
  run.line.training.task.guessing = 1;
  run.line.files.begin(true);
  run.options.log = folder / "log";
  run.go();
  CHECK(run.line.problem.ends_with("; no model is saved, since none was evaluated before (--evaluate-every)"));
  CHECK(run.called == "");
  CHECK(contents(folder / "line") == before);
  CHECK_FALSE(std::filesystem::exists(run.line.files.resume()));
  CHECK(small::contains(contents(folder / "log"),
                        "\n{\"step\":" + std::to_string(run.line.training.trainer.steps_done()) + ","));
}

TEST_CASE("the state that replaces an older one is that of the training, not of the mean that is saved") {
  const TemporaryFolder folder;
  TrainingRecipe recipe = small::line_recipe();
  recipe.average = 0.9;
  recipe.evaluate_every = 0;  // nothing is kept before the end
  WholeRun undisturbed("", recipe);
  small::train_until(undisturbed.line.training.trainer, recipe.steps);
  {
    LineRun older(folder / "line");
    small::train_until(older.training.trainer, 4);
    REQUIRE(older.files.keep(older.training.trainer, older.parts));
  }
  WholeRun run(folder / "line", recipe);
  run.line.files.begin(true);
  run.line.parts.save_model = [](const std::string&) { fail("write", "No space left on device"); };
  run.go();
  CHECK(small::contains(run.line.problem, "No space left on device"));
  const UnfinishedTraining state = read_unfinished("line", run.line.files);
  CHECK(state.state.steps_done == recipe.steps);
  WholeRun resumed(folder / "line", state.recipe);
  resumed.line.training.trainer.load_state(state.state);
  CHECK(resumed.line.training.trainer.hash() == undisturbed.line.training.trainer.hash());
  CHECK(resumed.line.a() != run.line.a());  // the mean
}
