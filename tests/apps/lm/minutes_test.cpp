// Chapter 9. Tests of --minutes: a training ends in time, and is one that can be repeated.
#include "apps/lm/minutes.h"

#include "tests/apps/lm_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

namespace {

LmRecipe short_recipe(i64 steps) {
  LmRecipe recipe;
  recipe.model.max_len = 8, recipe.model.num_layers = 1, recipe.model.layer.num_heads = 2;
  recipe.model.layer.d_model = 8, recipe.model.layer.d_ff = 8;
  recipe.batch = 2, recipe.steps = steps, recipe.evaluate_every = 0;
  recipe.schedule = Schedule::constant, recipe.warmup = 2, recipe.cooldown = 0.6, recipe.rate = 0.01;
  return recipe;
}

TextData short_data() { return text_data(many("the dog sees the cat. ", 40), 8); }

// Trains with a clock that each step sets forward, by more in the second half; returns the trainer's hash.
struct TimedRun {
  i64 steps = 0, settled_at = 0, times_settled = 0;
  double cooldown = 0, end = 0;
  std::string hash;
};
TimedRun timed_run(i64 expected_steps, double seconds_of_step, double end) {
  const TextData data = short_data();
  const LmRecipe recipe = short_recipe(expected_steps);
  LmTask task(recipe, data);
  Trainer trainer(task, recipe, 8);
  double now = 5;
  Deadline deadline(end, [&now] { return now; });
  TimedRun run;
  while (!trainer.finished()) {
    trainer.step();
    now += seconds_of_step;
    if (deadline.settles(trainer)) ++run.times_settled, run.settled_at = trainer.steps_done();
  }
  run.steps = trainer.steps_done(), run.cooldown = trainer.recipe().cooldown, run.end = now;
  run.hash = trainer.hash();
  return run;
}

}  // namespace

TEST_CASE("a training ends in time, whether the machine is slower or faster than expected") {
  for (const double seconds_of_step : {0.5, 1.0, 2.0, 0.1}) {
    CAPTURE(seconds_of_step);
    const TimedRun run = timed_run(95, seconds_of_step, 100);  // a second each was expected
    CHECK(run.times_settled == 1);
    CHECK(std::abs(run.end - 100) <= seconds_of_step);
    if (seconds_of_step >= 1) CHECK(run.settled_at == std::ceil(0.4 * 95 / seconds_of_step));
  }
}

TEST_CASE("the same training again, with its number of steps from the start, has the same bits") {
  const TimedRun run = timed_run(95, 1.7, 100);
  LmRecipe recipe = short_recipe(run.steps);
  recipe.cooldown = run.cooldown;
  const TextData data = short_data();
  LmTask task(recipe, data);
  Trainer trainer(task, recipe, 8);
  while (!trainer.finished()) trainer.step();
  CHECK(trainer.hash() == run.hash);
}

TEST_CASE("a rate that falls already cannot begin to fall, and steps that are made stay made") {
  const TextData data = short_data();
  const LmRecipe recipe = short_recipe(10);
  LmTask task(recipe, data);
  Trainer trainer(task, recipe, 8);
  for (int step = 0; step < 4; ++step) trainer.step();
  const auto error = [&](i64 steps) {
    try {
      trainer.fall_from_now(steps);
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string();
  };
  CHECK(error(4) == "lm: needs more than 4 steps in all, not 4");
  CHECK(error(8).empty());
  CHECK(trainer.recipe().steps == 8);
  CHECK(trainer.recipe().steps_before_cooldown() == 4);
  trainer.step();
  CHECK(error(12) == "lm: the rate falls already");
}

TEST_CASE("more time gives a model that is not smaller, and a recipe that can be trained") {
  const TextData data = text_data(many("the dog sees the cat. ", 2000), 8);
  i64 parameters = 0;
  for (const double seconds : {1.0, 1e3, 1e6}) {
    LmRecipe recipe;
    choose_for(seconds, data, recipe);
    recipe.validate();
    CHECK(recipe.optimizer == OptimizerKind::muon);
    CHECK(recipe.model.parameter_count() >= parameters);
    parameters = recipe.model.parameter_count();
    CHECK(recipe.evaluate_every * 8 <= recipe.steps);
  }
  CHECK(parameters > 1'000'000);
}

TEST_CASE("slow: --minutes prints the command that trains the same again") {
  const TemporaryFolder folder;
  const std::string text = written(folder / "a text", many("the dog sees the cat .\n", 2000));
  const std::string model = folder / "model";
  const std::string train = "lm train '" + text + "' --seed 3 --minutes 0.1 --hash ";
  const Result first = run(train + "--save '" + model + "'", "2>&1");
  REQUIRE(first.exit_code == 0);
  const std::string again = "the same again: orrery ";
  const size_t begin = first.text.find(again) + again.size();
  const std::string command = first.text.substr(begin, first.text.find('\n', begin) - begin);
  CHECK(command.starts_with("lm train '" + text + "' "));
  CHECK(contains(command, " --seed 3"));
  CHECK(contains(command, " --steps "));
  const auto hash_of = [](const std::string& output) { return output.substr(output.find("hash "), 21); };
  CHECK(hash_of(run(command + " --hash").text) == hash_of(first.text));
  CHECK(hash_of(run("lm train --hash --config '" + model + "'").text) == hash_of(first.text));
  check_usage_error("lm train --minutes 1 --steps 5", "--steps", "excludes --minutes");
  check_usage_error("lm train --minutes 1 --resume x", "--resume", "excludes --minutes");
}
