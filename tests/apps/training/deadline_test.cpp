// Chapter 9. Tests of what --minutes chooses by a training that went well, and of its end when more steps gain nothing.
#include "apps/training/deadline.h"

#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// What --minutes makes of a training of 1,000 steps with batches of 400, on a machine that takes a second for 1,000
// items and `each` for a step besides.
struct Choice {
  TrainingRecipe recipe{};
  i64 batch = 7, most_steps = 0;
  std::string words{};
};
Choice choice_for(double seconds, double each, double items, double epochs) {
  Choice choice;
  choice.recipe.schedule = Schedule::noam;
  choice.recipe.micro_batches = 3;
  choice.recipe.patience = choice.recipe.average_last = 2;
  const auto step = [&] { return each + static_cast<double>(choice.batch) / 1000; };
  TimeBudget budget("line", seconds, step);
  budget.follow({.batch = choice.batch,
                 .good_batch = 400,
                 .steps = 1000,
                 .rate = 0.01,
                 .warmup = 20,
                 .least_batch = 10,
                 .items = items,
                 .epochs = epochs},
                choice.recipe);
  budget.plan(choice.recipe, {.step = step(), .evaluation = 0.01 * seconds, .afterwards = 0}, 5);
  choice.words = budget.chosen;
  choice.most_steps = budget.most_steps;
  return choice;
}

// A training of a line whose clock each step sets forward.
struct TimedLine {
  i64 steps = 0;
  double end = 0;
};
TimedLine timed_line(double seconds_of_step, double end, i64 planned, i64 most) {
  TrainingRecipe recipe = small::line_recipe();
  recipe.steps = planned;
  recipe.cooldown = Deadline::cooldown;
  small::LineTraining line(recipe);
  double now = 0;
  Deadline deadline(
      end, [&now] { return now; }, most);
  int settled = 0;
  while (!line.trainer.finished()) {
    line.trainer.step();
    now += seconds_of_step;
    settled += deadline.settles(line.trainer);
  }
  CHECK(settled == 1);
  return {line.trainer.steps_done(), now};
}

}  // namespace

TEST_CASE("the batch is that of the known training for as much to read, and its root for less") {
  const double endless = KnownTraining::endless;
  const Choice same = choice_for(400, 0, endless, 1), quarter = choice_for(100, 0, endless, 1),
               more = choice_for(4000, 0, endless, 1), little = choice_for(0.05, 0, endless, 1);
  CHECK(same.batch == 400);
  CHECK(more.batch == 400);
  CHECK(quarter.batch == 200);
  CHECK(little.batch == 10);
  CHECK(same.recipe.rate == doctest::Approx(0.01));
  CHECK(quarter.recipe.rate == doctest::Approx(0.01));
  CHECK(more.recipe.rate == doctest::Approx(0.01 * std::sqrt(400 / std::sqrt(1.6e6))));
  CHECK(little.recipe.rate == doctest::Approx(0.01 * std::sqrt(10 / std::sqrt(20.0))));
  CHECK(quarter.recipe.steps == 475);  // 95 of the 100 seconds, without evaluations
  CHECK(quarter.recipe.warmup == 20);
  CHECK(quarter.recipe.evaluate_every == 95);
  CHECK(quarter.most_steps == 0);
  CHECK(quarter.words == "batches of 200, rate 0.01, 475 steps");
  CHECK(quarter.recipe.schedule == Schedule::constant);
  CHECK(quarter.recipe.cooldown == Deadline::cooldown);
  CHECK(quarter.recipe.micro_batches == 1);
  CHECK(quarter.recipe.patience + quarter.recipe.average_last == 0);
}

TEST_CASE("a plan has at least two steps, since the rate falls after the first") {
  const auto planned = [](double seconds) {
    TrainingRecipe recipe;
    TimeBudget(
        "line", seconds, [] { return 1.0; }, [] { return 0.0; })
        .plan(recipe, {.step = 1}, 0);
    return recipe.steps;
  };
  CHECK(planned(2.1) == 2);
  CHECK(small::contains(small::error_of([&] { planned(1.9); }), "--minutes leaves no time to train"));
}

TEST_CASE("what a step costs besides its items counts, too") {
  const Choice dear = choice_for(100, 0.2, KnownTraining::endless, 1);
  CHECK(dear.batch < 200);
  CHECK(dear.batch > 100);
  CHECK(static_cast<double>(dear.recipe.steps) * (0.2 + static_cast<double>(dear.batch) / 1000) ==
        doctest::Approx(95).epsilon(0.01));
}

TEST_CASE("few items are not read more often than is worth it, and get smaller batches") {
  const Choice few = choice_for(4000, 0, 10'000, 100);
  CHECK(few.batch == 400);
  CHECK(few.most_steps == 2500);
  CHECK(few.recipe.steps == 2500);
  CHECK(few.words == "batches of 400, rate 0.00795271, 2500 steps, 100 epochs");
  const Choice short_of_time = choice_for(10, 0, 10'000, 100);
  CHECK(short_of_time.recipe.steps < short_of_time.most_steps);
  const Choice hardly_any = choice_for(4000, 0, 10, 100);  // smaller batches, and enough steps all the same
  CHECK(hardly_any.batch == 20);
  CHECK(hardly_any.recipe.steps == TimeBudget::always_worth);
}

TEST_CASE("a training with little to read ends before its time, and in time on a machine that is slow") {
  const TimedLine early = timed_line(1, 1000, 100, 100), faster = timed_line(0.1, 100, 80, 200),
                  slow = timed_line(4, 100, 100, 100), at_once = timed_line(0, 100, 100, 100);
  CHECK(early.steps == 100);
  CHECK(early.end == 100);
  CHECK(faster.steps == 200);
  CHECK(slow.steps == 25);
  CHECK(slow.end == 100);
  CHECK(at_once.steps == 100);
}

TEST_CASE("the time that is left is that of a plan, if there is one") {
  small::LineRun run("");
  run.go({.planned_seconds = 1e6});
  CHECK(small::contains(run.heard, " 277 h 46 min left\n"));
}
