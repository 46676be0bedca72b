// Chapter 9. `orrery bench toy`: each task in turn.
#include "apps/measure/bench/bench.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"
#include "apps/tasks/toy/training.h"

namespace orrery {

ToyFigures measure_toy(const std::string& task, i64 steps, i64 seed) {
  constexpr i64 exam_size = 1000;
  ToyRecipe recipe;
  recipe.task.name = task;
  recipe.steps = steps;
  recipe.seed = seed;
  const Stopwatch watch;
  ToyTraining training(recipe);
  while (training.trainer.steps_done() < recipe.steps) training.trainer.step();
  ToyFigures figures{.task = task, .steps = steps, .exam_size = exam_size, .training_seconds = watch.seconds()};
  figures.right = examine(training.task.model, recipe.task, exam_size, seed).right;
  figures.exam_seconds = watch.seconds() - figures.training_seconds;
  return figures;
}

std::string toy_line(const ToyFigures& f) {
  return f.task + numbers(" steps=%ld train_s=%.2f step_ms=%.2f exam_s=%.2f exact=%ld/%ld", f.steps, f.training_seconds,
                          1e3 * f.training_seconds / static_cast<double>(f.steps), f.exam_seconds, f.right,
                          f.exam_size);
}

int bench_toy(const BenchOptions& options) {
  announce(options);
  nlohmann::ordered_json results;
  for (const std::string task : {"reverse", "copy", "sort"}) {
    const ToyFigures figures = measure_toy(task, options.steps, options.seed);
    std::cout << toy_line(figures) << std::endl;
    results.push_back({{"task", task},
                       {"steps", figures.steps},
                       {"training_seconds", figures.training_seconds},
                       {"exam_seconds", figures.exam_seconds},
                       {"right", figures.right},
                       {"exam_size", figures.exam_size}});
  }
  write_results(options, "toy", results);
  return done;
}

}  // namespace orrery
