// Chapter 9. Tests of the steps of every training: evaluations, files, the log, and the ways in which it ends.
#include "apps/training/run.h"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "tests/apps/training/line_run.h"
#include "tests/core/file_size_limit.h"
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
  CHECK(run.saved_a() == run.a());
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

TEST_CASE("a log that ends within a line and cannot be continued is told, and nothing stops") {
  const TemporaryFolder folder;
  const std::string log = folder / "log", begun = R"({"start":"line)";
  set_contents(log, begun);
  LineRun run("");
  {
    const small::FileSizeLimit full(begun.size());
    run.go({}, log, TrainingLog::Earlier::continued);
  }
  CHECK(run.problem == "");
  CHECK(run.training.trainer.steps_done() == 12);
  CHECK(small::contains(run.heard, "the log is not whole: write " + log + ": File too large\n"));
  CHECK(contents(log) == begun);
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
    LineRun run(folder / (limited ? "limited" : "stopped"), recipe);
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
                                         " of 100000000; to resume: orrery line --resume " + run.files.model() + "\n"));
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

TEST_CASE("a state that cannot be saved at a stop is told, and nothing says that the training continues") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.parts.save_model = [](const std::string&) { fail("write line", "No space left on device"); };
  run.go({.after_step = [&](const StepResult&) {
    if (run.training.trainer.steps_done() == 2) std::raise(SIGTERM);
  }});
  CHECK(run.ending == Ending::stopped);
  CHECK(small::contains(run.heard, "No space left on device; the training cannot be resumed from this step\n"));
  CHECK_FALSE(small::contains(run.heard, "continues"));
}

TEST_CASE("a training that was not ended, as something failed before, saves its best model") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.5, 0.2, 0.6, 0.7};
  double a_at_6 = 0;
  run.go({.after_evaluation = [&] {
    if (run.training.trainer.steps_done() == 6) a_at_6 = run.a();
    return "";
  }});
  REQUIRE(run.a() != a_at_6);
  CHECK_FALSE(run.training.trainer.ended());
  run.save();
  CHECK(run.saved_a() == a_at_6);
}

TEST_CASE("a stop at an evaluation that is not finite leaves the last good state, and says from which step") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  run.training.task.validation = {0.5, NAN, 0, 0};
  run.go({.after_step = [&](const StepResult&) {
    if (run.training.trainer.steps_done() == 6) std::raise(SIGTERM);
  }});
  CHECK(run.ending == Ending::stopped);
  CHECK(read_unfinished("line", run.files).state.steps_done == 3);
  run.save();
  CHECK(small::contains(run.heard, "stopped after step 6 of 12; to resume from step 3: orrery line --resume "));
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

TEST_CASE("the time that is left is that of a plan, if there is one") {
  LineRun run("");
  run.go({.planned_seconds = 1e6});
  CHECK(small::contains(run.heard, " 277 h 46 min left\n"));
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
