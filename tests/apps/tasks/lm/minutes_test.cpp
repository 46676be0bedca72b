// Chapter 9. Tests of --minutes: a training ends in time, and is one that can be repeated.
#include "apps/tasks/lm/training.h"

#include "apps/show/report/run_log.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

namespace {

LmRecipe short_recipe(i64 steps) {
  LmRecipe recipe;
  recipe.model.max_len = 8;
  recipe.model.num_layers = 1;
  recipe.model.layer.num_heads = 2;
  recipe.model.layer.d_model = 8;
  recipe.model.layer.d_ff = 8;
  recipe.batch = 2;
  recipe.steps = steps;
  recipe.evaluate_every = 0;
  recipe.schedule = Schedule::constant;
  recipe.warmup = 2;
  recipe.cooldown = 0.6;
  recipe.rate = 0.01;
  return recipe;
}

// What --minutes chooses; `step_seconds` stands for the machine.
struct Fitted {
  LmRecipe recipe{};
  double slept = 0;
  std::string chosen{};
};
Fitted fitted(double seconds, const TextData& data, const std::function<double(const LmRecipe&)>& step_seconds,
              const Clock& clock = steady_seconds) {
  Fitted result;
  TimeBudget budget(
      "lm", seconds, [&] { return step_seconds(result.recipe); }, clock);
  fit(result.recipe, data, budget);
  result.slept = budget.slept;
  result.chosen = budget.chosen;
  return result;
}

TextData short_data() { return text_data(repeated("the dog sees the cat. ", 40), 8); }

// A training whose clock each step sets forward, by another amount from a certain second on. At another second the
// machine sleeps.
struct TimedRun {
  i64 steps = 0, settled_at = 0, times_settled = 0;
  double cooldown = 0, end = 0;
  bool overslept = false;
  std::string hash;
};
struct Speed {
  double seconds_of_step, later, from = 1e9, sleeps_at = 1e9, sleep = 0;
};
TimedRun timed_run(i64 expected_steps, const Speed& speed, double end) {
  const TextData data = short_data();
  LmRecipe recipe = short_recipe(expected_steps);
  LmTask task(recipe, data);
  Trainer trainer(task);
  double now = 5;
  Deadline deadline(end, [&now] { return now; });
  TimedRun run;
  while (!trainer.finished() && !run.overslept) {
    trainer.step();
    const double before = now;
    now += now < speed.from ? speed.seconds_of_step : speed.later;
    if (before < speed.sleeps_at && now >= speed.sleeps_at) now += speed.sleep;
    if (deadline.settles(trainer)) {
      ++run.times_settled;
      run.settled_at = trainer.steps_done();
    }
    run.overslept = deadline.overslept();
  }
  run.steps = trainer.steps_done();
  run.cooldown = trainer.recipe().cooldown;
  run.end = now;
  run.hash = trainer.hash();
  return run;
}

}  // namespace

TEST_CASE("dropout is for a text that will be read many times") {
  const TextData data = text_data(repeated("the dog sees the cat. ", 3000), 64);
  const auto dropout = [&](double seconds) {
    const LmRecipe recipe = fitted(seconds, data, [](const LmRecipe&) { return 0.1; }).recipe;
    const i64 tokens = recipe.steps * recipe.batch * recipe.model.max_len;
    CHECK((recipe.model.layer.dropout > 0) == (tokens > 6 * data.training.count()));
    return recipe.model.layer.dropout;
  };
  CHECK(dropout(15) == 0);
  CHECK(dropout(60) == 0.1);
}

TEST_CASE("a training ends in time, whether the machine is slower or faster than expected") {
  for (const double seconds_of_step : {0.5, 1.0, 2.0, 0.1}) {
    CAPTURE(seconds_of_step);
    const TimedRun run = timed_run(95, {seconds_of_step, 0}, 100);  // a second each was expected
    CHECK(run.times_settled == 1);
    CHECK(std::abs(run.end - 100) <= seconds_of_step);
    CHECK(std::abs(static_cast<double>(run.settled_at) - 0.4 * 95 / seconds_of_step) <= 1);
  }
}

TEST_CASE("a change of speed before the rate falls is made up for, a later one is not") {
  const TimedRun early = timed_run(95, {1, 2, 25}, 100), late = timed_run(95, {1, 2, 60}, 100);
  CHECK(std::abs(early.end - 100) <= 6);
  CHECK(late.settled_at == 38);
  CHECK(late.end == 5 + 55 + 2 * (95 - 55));
}

TEST_CASE("what the machine sleeps counts as time, and not as speed") {
  // Before the rate falls: what is left of the time is used, at the speed of a machine that is awake.
  for (const double sleeps_at : {12.0, 30.0}) {
    CAPTURE(sleeps_at);
    const TimedRun some = timed_run(95, {.seconds_of_step = 1, .later = 1, .sleeps_at = sleeps_at, .sleep = 40}, 100);
    CHECK(some.times_settled == 1);
    CHECK_FALSE(some.overslept);
    CHECK(std::abs(some.end - 100) <= 2);
  }
  const TimedRun all = timed_run(95, {.seconds_of_step = 1, .later = 1, .sleeps_at = 30, .sleep = 1000}, 100);
  CHECK(all.steps == 26);  // one after it woke
  CHECK_FALSE(all.overslept);
  // While it falls, the number of steps is settled: the training ends at its deadline, and can be resumed.
  const TimedRun late = timed_run(95, {.seconds_of_step = 1, .later = 1, .sleeps_at = 80, .sleep = 15}, 100);
  CHECK(late.overslept);
  CHECK(late.end == 100);
  CHECK(late.steps == 80);
  // A short pause is none, and a machine that has become slower may end late.
  CHECK_FALSE(timed_run(95, {.seconds_of_step = 1, .later = 1, .sleeps_at = 80, .sleep = 4}, 100).overslept);
  CHECK_FALSE(timed_run(95, {1, 2, 60}, 100).overslept);
}

TEST_CASE("a machine that sleeps while its speed is measured is measured again") {
  const TextData data = text_data(repeated("the dog sees the cat. ", 2000), 8);
  double now = 0;
  int measured = 0, sleeps_in = 1;
  const auto step_seconds = [&](const LmRecipe&) {
    const double step = 0.05, sleep = ++measured == sleeps_in ? 5000 : 0;
    now += 1 + step + sleep;
    return step + sleep;
  };
  const auto choice = [&](int sleeps) {
    measured = 0;
    sleeps_in = sleeps;
    return fitted(60, data, step_seconds, [&now] { return now; });
  };
  const Fitted awake = choice(0);
  CHECK(awake.slept == 0);
  for (const int sleeps : {1, 2}) {
    CAPTURE(sleeps);
    const Fitted asleep = choice(sleeps);
    CHECK(asleep.slept == doctest::Approx(5000));
    CHECK(asleep.recipe.steps == awake.recipe.steps);
    CHECK(asleep.chosen == awake.chosen);
  }
}

TEST_CASE("a first measurement that takes a few seconds longer than the second is no sleep") {
  const TextData data = text_data(repeated("the dog sees the cat. ", 2000), 8);
  double now = 0, more = 0;
  const auto step_seconds = [&](const LmRecipe&) {
    now += 0.1 + more;
    more = 0;
    return 0.05;
  };
  for (const double pause : {4.0, 40.0}) {
    CAPTURE(pause);
    more = pause;
    CHECK(fitted(60, data, step_seconds, [&now] { return now; }).slept == doctest::Approx(pause < 5 ? 0 : pause));
  }
}

TEST_CASE("slow: a training with --minutes ends in time on a machine that sleeps, as does one with --time-limit") {
  for (const std::string limit :
       {"--minutes 3 --save ", "--time-limit 60 --steps 1000000 --evaluate-every 0 --save "}) {
    CAPTURE(limit);
    const TemporaryFolder folder;
    const std::string text = written(folder / "text", repeated("the dog sees the cat .\n", 2000)),
                      ahead = written(folder / "ahead", "0\n"), log = folder / "log";
    const std::string train = quoted_program + "lm train '" + text + "' --seed 3 --log '" + log + "' " + limit + "'" +
                              (folder / "model") + "'";
    // Once a few steps are made, the clock is an hour ahead.
    const Result result = shell("cd '" + folder.path().string() + "'; export ORRERY_CLOCK_AHEAD='" + ahead +
                                "' ASAN_OPTIONS=verify_asan_link_order=0; { LD_PRELOAD='" ORRERY_BUILD_FOLDER
                                "/tests/orrery_faults.so' timeout 300 " +
                                train +
                                " > out 2>&1; echo $? > code; } & until [ -s code ] || [ $(cat log 2>/dev/null | wc "
                                "-l) -gt 4 ]; do sleep 0.05; done; echo 3600 > ahead; wait; cat code");
    INFO(contents(folder / "out"));
    CHECK(result.text == (limit.starts_with("--minutes") ? "0\n" : "130\n"));
  }
}

TEST_CASE("the same training again, with its number of steps from the start, has the same bits") {
  const TimedRun run = timed_run(95, {1.7, 0}, 100);
  LmRecipe recipe = short_recipe(run.steps);
  recipe.cooldown = run.cooldown;
  const TextData data = short_data();
  LmTask task(recipe, data);
  Trainer trainer(task);
  while (!trainer.finished()) trainer.step();
  CHECK(trainer.hash() == run.hash);
}

TEST_CASE("a plan changes while the rate is constant, and not after") {
  const TextData data = short_data();
  LmRecipe recipe = short_recipe(10);
  LmTask task(recipe, data);
  Trainer trainer(task);
  for (int step = 0; step < 4; ++step) trainer.step();
  const auto error = [&](i64 steps, double cooldown) {
    return small::error_of([&] { trainer.plan(steps, cooldown); });
  };
  CHECK(error(8, 0.75) == "lm: the rate falls after 2 of 8 steps, and 4 are made");
  CHECK(error(8, 0.5).empty());
  CHECK(trainer.recipe().steps == 8);
  CHECK(trainer.recipe().steps_before_cooldown() == 4);
  trainer.step();
  CHECK(error(12, 0.5) == "lm: the rate falls after 4 of 8 steps, and 5 are made");
  LmRecipe cosine = short_recipe(10);
  cosine.schedule = Schedule::cosine;
  LmTask other_task(cosine, data);
  Trainer other(other_task);
  CHECK(small::error_of([&] { other.plan(20, 0.5); }) == "lm: only a constant rate allows another number of steps");
}

TEST_CASE("more time gives a larger model, and a recipe that can be trained") {
  const TextData data = text_data(repeated("the dog sees the cat. ", 2000), 8);
  const auto step_seconds = [&](LmRecipe recipe) {
    recipe.model.vocab_size = data.tokenizer.size();
    const i64 tokens = recipe.batch * recipe.model.max_len;
    return static_cast<double>(recipe.model.parameter_count() * tokens) / 2e10;
  };
  struct Case {
    double seconds;
    i64 width;
  };
  for (const Case& some : {Case{100, 128}, Case{1e3, 256}, Case{1e4, 384}}) {
    CAPTURE(some.seconds);
    const Fitted choice = fitted(some.seconds, data, step_seconds);
    const LmRecipe& recipe = choice.recipe;
    recipe.validate();
    CHECK(recipe.model.layer.d_model == some.width);
    CHECK(contains(choice.chosen, "layers of width " + std::to_string(some.width) + ","));
    CHECK(recipe.optimizer == OptimizerKind::muon);
    CHECK(recipe.evaluate_every * 8 <= recipe.steps);
    const double training = static_cast<double>(recipe.steps) * step_seconds(recipe);
    CHECK(training > 0.8 * some.seconds);
    CHECK(training < some.seconds);
  }
  CHECK(contains(small::error_of([&] { fitted(0.001, data, step_seconds); }), "--minutes leaves no time to train"));
}

TEST_CASE("slow: --minutes prints the command that trains the same again") {
  const TemporaryFolder folder;
  const std::string text = written(folder / "a text", repeated("the dog sees the cat .\n", 2000));
  const std::string model = folder / "model";
  const std::string train = "lm train '" + text + "' --seed 3 --minutes 0.2 --hash ", log = folder / "log";
  const Result first = run(train + "--save '" + model + "' --log '" + log + "'", "2>&1");
  INFO(first.text);
  REQUIRE(first.exit_code == 0);
  const std::string again = "the same again: orrery ";
  const size_t begin = first.text.find(again) + again.size();
  const std::string command = first.text.substr(begin, first.text.find('\n', begin) - begin);
  CHECK(command.starts_with("lm train '" + text + "' "));
  CHECK(contains(command, " --seed 3"));
  CHECK(contains(first.text, "chosen: 4 layers of width "));
  const run_report::RunLog read = run_report::read_run_log(log);  // the log has the plan that was carried out
  CHECK(read.steps == read.last_step());
  CHECK(read.left_out == 0);
  CHECK(contains(command, " --steps "));
  CHECK(hash_in(run(command + " --hash").text) == hash_in(first.text));
  CHECK(hash_in(run("lm train --hash --config '" + model + "'").text) == hash_in(first.text));
  check_usage_error("lm train --minutes 1 --steps 5", "--steps", " excludes --minutes");
  check_usage_error("lm train --minutes 1 --print-config", "--print-config", " excludes --minutes");
  check_usage_error("lm train --minutes 1 --resume x", "--resume", " excludes --minutes");
}
