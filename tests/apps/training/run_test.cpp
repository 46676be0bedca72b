// Chapter 9. Tests of the loop of every training program: evaluations, files, the log, and the ways in which it ends.
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
#include "tests/apps/training/line_task.h"
#include "tests/core/file_size_limit.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::line_recipe;
using small::LineTraining;

namespace {

// Trains a line to its end, as a program does; `heard` is what it wrote to stderr.
struct LineRun {
  explicit LineRun(const std::string& path, const TrainingRecipe& recipe = line_recipe())
      : training(recipe), files("line", path) {}
  void go(const RunHooks& hooks = {}, const std::string& log_path = "", bool continues = false) {
    listen([&] {
      TrainingLog log(log_path, continues);
      const Interrupt interrupt;
      ending = run_steps(training.trainer, files, parts, log, interrupt, hooks);
    });
  }
  void save(bool failed = false) {
    TrainingLog none("", false);
    listen([&] { save_model(training.trainer, files, parts, none, "orrery line", failed); });
  }
  void listen(const std::function<void()>& f) {
    std::ostringstream text;
    struct Listening {
      std::streambuf* before;
      ~Listening() { std::cerr.rdbuf(before); }
    } const listening{std::cerr.rdbuf(text.rdbuf())};
    try {
      f();
    } catch (const Error& error) { problem = error.what(); }
    heard += text.str();
  }
  double a() const { return training.task.a.value().item(); }
  double saved_a() const { return read_safetensors(files.model()).tensors.at("a").item(); }

  LineTraining training;
  TrainingFiles files;
  SavedParts parts{.save_model =
                       [this](const std::string& path) {
                         write_safetensors(path, {{"a", training.task.a.value()}, {"b", training.task.b.value()}});
                       },
                   .origin = {}};
  Ending ending = Ending::finished;
  std::string heard, problem;
};

std::vector<nlohmann::json> lines_of_log(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(contents(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

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

TEST_CASE("the log has steps and evaluations as JSON lines, and a resumed training appends to it") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  LineRun run("");
  run.training.task.validation = {0.5, 0.75, NAN, 0.25};
  run.go({}, path);
  std::vector<nlohmann::json> lines = lines_of_log(path), evaluations;
  REQUIRE(lines.size() >= 6);
  CHECK(lines[0] == nlohmann::json{{"start", "line"}, {"after_step", 0}, {"steps", 12}, {"parameters", 2}});
  lines.erase(lines.begin());
  CHECK(lines[0]["step"] == 1);
  CHECK(lines[0]["loss"] == run.training.trainer.losses()[0]);
  CHECK(lines[0]["rate"] == 0.05);
  for (const nlohmann::json& line : lines) {
    CHECK(line["seconds"] >= 0);
    if (line.contains("validation")) evaluations.push_back(line);
  }
  REQUIRE(evaluations.size() == 4);
  CHECK(evaluations[1]["step"] == 6);
  CHECK(evaluations[1]["validation"] == 0.75);
  CHECK(evaluations[1]["best"] == false);
  CHECK(evaluations[2]["validation"].is_null());
  CHECK(evaluations[3]["best"] == true);
  LineRun more(""), anew("");
  more.go({}, path, true);
  CHECK(lines_of_log(path).size() >= lines.size() + 7);
  CHECK(lines_of_log(path)[1] == lines[0]);
  anew.training.task.validation = {1, 2, 3, 4};
  anew.go({}, path);
  CHECK(lines_of_log(path)[2]["step"] == 3);  // before an evaluation, the step that led to it
  CHECK(lines_of_log(path)[3]["validation"] == 1);
}

TEST_CASE("the log begins with the options, has samples and scores, and a resumed training begins a new line") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  LineRun run("");
  run.parts.origin[options_key] = R"({"rate":0.05,"name":"line"})";
  run.go({.after_evaluation = [&] { return run.training.trainer.steps_done() == 6 ? "at\xFF six" : ""; }}, path);
  std::vector<nlohmann::json> lines = lines_of_log(path), samples;
  CHECK(lines[0]["options"] == nlohmann::json{{"rate", 0.05}, {"name", "line"}});
  for (const nlohmann::json& line : lines)
    if (line.contains("sample")) samples.push_back(line);
  REQUIRE(samples.size() == 1);
  CHECK(samples[0] == nlohmann::json{{"step", 6}, {"sample", "at\xEF\xBF\xBD six"}});
  set_contents(path, contents(path) + "{\"step\":1");
  TrainingLog log(path, true);
  log.start(run.training.trainer, "");
  log.score(12, "exact match", 0.5);
  CHECK(
      contents(path).ends_with("\n{\"step\":1\n{\"start\":\"line\",\"after_step\":12,\"steps\":12,\"parameters\":2}\n"
                               "{\"step\":12,\"score\":\"exact match\",\"value\":0.5}\n"));
}

TEST_CASE("a log is written over a log, and over nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  for (const std::string allowed : {"", "{\"start\":\"toy\"}\n", "{\"step\":1,\"loss\":2}\n"}) {
    set_contents(path, allowed);
    CHECK(TrainingLog(path, false).used());
  }
  for (const std::string other : {"{\"steps\": 3}", "{", "a text\n"}) {
    set_contents(path, other);
    CHECK(small::error_of([&] { TrainingLog(path, false); }) ==
          "log: " + path + " is not a training log; name another file, or remove it");
    CHECK(contents(path) == other);
  }
}

TEST_CASE("the log has at most ten steps a second, whose speed counts all tokens since the last") {
  const TemporaryFolder folder;
  {
    TrainingLog log(folder / "log", false);
    const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(120)); };
    log.step(1, {.loss = 2, .tokens = 100});
    log.step(2, {.loss = 2, .tokens = 100});
    wait();
    log.step(3, {.loss = 1.5, .tokens = 100});
    log.step(4, {.loss = 1.25, .tokens = 100});
    log.write_left_out();
    log.write_left_out();
  }
  const std::vector<nlohmann::json> lines = lines_of_log(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[2]["step"] == 4);
  CHECK(lines[1]["step"] == 3);
  CHECK(lines[1]["loss"] == 1.5);
  const double tokens =
      lines[1]["tokens_per_s"].get<double>() * (lines[1]["seconds"].get<double>() - lines[0]["seconds"].get<double>());
  CHECK(tokens == doctest::Approx(200).epsilon(0.02));
}

TEST_CASE("what could not be saved ends a training before its first step, and an older log stays") {
  const TemporaryFolder folder;
  const std::string log = folder / "log", old = "{\"start\":\"line\"}\n";
  set_contents(log, old);
  LineRun run(folder / "line");
  run.parts.origin = {{"vocabulary", std::string(200'000, 'x')}};
  run.go({}, log);
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
    run.go({}, log, true);
  }
  CHECK(run.problem == "");
  CHECK(run.training.trainer.steps_done() == 12);
  CHECK(small::contains(run.heard, "the log is not whole: write " + log + ": File too large\n"));
  CHECK(contents(log) == begun);
}

TEST_CASE("a log that is not whole fails the training at its end, after the model is saved") {
  const TemporaryFolder folder;
  LineRun run(folder / "line");
  TrainingLog full("/dev/full", false);
  run.go();
  full.score(12, "exact match", 0.5);  // the last line, after all steps
  CHECK(full.problem() == "write /dev/full: No space left on device");
  run.listen([&] { save_model(run.training.trainer, run.files, run.parts, full, "orrery line", false); });
  CHECK(run.heard.ends_with("saved to " + run.files.model() + "\n"));
  CHECK(run.problem == "log: /dev/full is not whole: write /dev/full: No space left on device");
  CHECK(run.saved_a() == run.a());
}

TEST_CASE("two trainings with one log: the second one is refused, and the first one's lines stay") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  TrainingLog first(path, false);
  first.score(1, "exact match", 0.5);
  const std::string before = contents(path);
  for (const bool continues : {false, true})
    CHECK(small::error_of([&] { TrainingLog(path, continues); }) == "write " + path + ": somebody else is writing it");
  CHECK(contents(path) == before);
  first.end();
  CHECK(TrainingLog(path, true).used());
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
    recipe.evaluate_every = 1000, recipe.steps = 100000000;
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
    while (whole.trainer.steps_done() <= done) {
      whole.trainer.step();
      if (whole.trainer.evaluation_is_due()) whole.trainer.evaluate();
    }
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
  interrupted(unsaved), interrupted(failed);
  unsaved.save(), failed.save(true);
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
