// Chapter 9. Tests of a training from its first line to its last: what is called, in which order, whatever fails.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "apps/program/exit_code.h"
#include "apps/training/run.h"
#include "tests/apps/training/line_run.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::LineRun;

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

TEST_CASE("a report that fails does not keep the model from being saved, nor a save the figures") {
  const TemporaryFolder folder;
  WholeRun reporting(folder / "line"), saving(folder / "other");
  reporting.go([] { fail("report", "cannot be made"); });
  CHECK(reporting.line.problem == "report: cannot be made");
  CHECK(reporting.called == "report figures ");
  CHECK(std::filesystem::exists(reporting.line.files.model()));
  saving.line.parts.save_model = [](const std::string&) { fail("write", "No space left on device"); };
  saving.go();
  CHECK(small::contains(saving.line.problem, "line: the model is not saved: write: No space left on device"));
  CHECK(saving.called == "report figures ");
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
