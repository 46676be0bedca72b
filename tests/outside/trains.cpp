// Chapter 9. A program of somebody else's project that trains a task of its own: a network learns the square of x.
#include <iostream>

#include "apps/training/training_files.h"
#include "nn/files/files.h"
#include "nn/nn.h"
using namespace orrery;

struct Square final : Task {
  std::string program() const override { return "square"; }
  nn::Module& module() override { return network; }
  TrainingRecipe& recipe() override { return how; }
  std::vector<Items> draw(i64, i64) override {
    x = rand_uniform({64, 1}, -1, 1, numbers);
    return {Items{64}};
  }
  BatchLoss loss(i64, nn::Pass& pass) override {
    const Variable error = sub(network(constant(x), pass), constant(x * x));
    return {mean(mul(error, error))};
  }
  std::vector<Score> evaluate() override {
    nn::Pass pass = nn::Pass::inference();
    return {{"distance", loss(0, pass).loss.item()}};
  }
  TrainingRecipe how{.steps = 1000, .schedule = Schedule::constant, .rate = 0.03, .average = 0.9};
  Rng numbers{1};
  nn::FeedForward network{1, 32, numbers};
  Tensor x;
};

int main(int count, char** arguments) {
  Square task;
  Trainer trainer(task);
  TrainingFiles files("square", count > 1 ? arguments[1] : "");
  const SavedParts parts{.save_model = [&](const std::string& path) { nn::save(task.network, path); }};
  for (files.begin(true); !trainer.finished(); trainer.evaluate(), files.keep(trainer, parts))
    for (int i = 0; i < 100; ++i) trainer.step();
  trainer.end_with_best();
  std::cout << trainer.hash() << (trainer.best_score() < 1e-3 && files.end(parts, true) ? " learned\n" : " failed\n");
}
