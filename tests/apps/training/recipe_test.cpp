// Chapter 9. Tests of a training's recipe: its JSON, its rates, its optimiser.
#include "apps/training/recipe.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "core/tensor_ops.h"
#include "optim/muon.h"
#include "optim/schedule.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"

using namespace orrery;
using small::line_recipe;

TEST_CASE("a recipe goes through JSON unchanged, and impossible ones are refused") {
  TrainingRecipe recipe = line_recipe();
  recipe.rate = 1.0 / 3;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.schedule = Schedule::inverse_sqrt;
  recipe.warmup = 3;
  const TrainingRecipe read = training_recipe(to_json(recipe));
  CHECK(read.rate == recipe.rate);
  CHECK(to_json(read) == to_json(recipe));
  const auto error_of = [](const std::string& json) { return small::error_of([&] { training_recipe(json); }); };
  CHECK(small::contains(error_of(R"({"steps": 0})"), "steps must be positive"));
  CHECK(small::contains(error_of(R"({"schedule": "sine"})"), "schedule cannot be"));
  CHECK(small::contains(error_of(R"({"schedule": "cosine", "steps": 5, "warmup": 5})"), "warmup (5)"));
  CHECK(small::contains(error_of(R"({"patience": 2})"), "need evaluate_every"));
  CHECK(small::contains(error_of(R"({"average": 0.9, "average_last": 2, "evaluate_every": 1})"), "exclude each other"));
  CHECK(small::contains(error_of(R"({"average": 1.5})"), "average"));
  CHECK(small::contains(error_of(R"({"clip": -1})"), "clip must be 0 or more"));
  CHECK(small::contains(error_of(R"({"cooldown": 1.5})"), "cooldown must be from 0 to 1, not 1.5"));
  CHECK(small::contains(error_of(R"({"warmup": 0})"), "needs a warmup"));
  CHECK(small::contains(error_of(R"({"colour": 1})"), "colour"));
}

TEST_CASE("the seed, the time limit and the model's width are not in a recipe's JSON") {
  TrainingRecipe recipe = line_recipe(), other = line_recipe();
  other.seed = 5;
  other.minutes = 3;
  other.width = 64;
  CHECK(to_json(other) == to_json(recipe));
  other.patience = 1;
  CHECK(to_json(other) != to_json(recipe));
}

TEST_CASE("each schedule is optim's, and every one can cool down") {
  TrainingRecipe recipe{.steps = 1000, .rate = 0.5, .first_rate = 0.01, .last_rate = 0.1, .warmup = 100, .width = 64};
  const auto rates = [&](Schedule schedule) {
    recipe.schedule = schedule;
    return std::vector{recipe.rate_of(1), recipe.rate_of(100), recipe.rate_of(700)};
  };
  CHECK(rates(Schedule::constant) == std::vector{0.5 * 1 / 100, 0.5, 0.5});
  CHECK(rates(Schedule::noam) ==
        std::vector{0.5 * optim::noam(1, 64, 100), 0.5 * optim::noam(100, 64, 100), 0.5 * optim::noam(700, 64, 100)});
  CHECK(rates(Schedule::inverse_sqrt) ==
        std::vector{optim::inverse_sqrt(1, 0.5, 100, 0.01), 0.5, optim::inverse_sqrt(700, 0.5, 100, 0.01)});
  CHECK(rates(Schedule::cosine) ==
        std::vector{optim::warmup_cosine(1, 0.5, 100, 1000, 0.1), 0.5, optim::warmup_cosine(700, 0.5, 100, 1000, 0.1)});
  for (const Schedule schedule : {Schedule::constant, Schedule::noam, Schedule::inverse_sqrt, Schedule::cosine}) {
    recipe.cooldown = 0;
    const std::vector<double> flat = rates(schedule);
    recipe.cooldown = 0.4;  // from step 600 on
    const std::vector<double> cooled = rates(schedule);
    CHECK(cooled[1] == flat[1]);
    CHECK(cooled[2] == doctest::Approx(flat[2] * optim::linear_cooldown(700, 1000, 600)));
    CHECK(cooled[2] < flat[2]);
  }
}

TEST_CASE("the optimiser is the recipe's, and weight decay falls on matrices alone") {
  for (const OptimizerKind kind :
       {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::muon}) {
    const auto moved = [&](double weight_decay, double momentum) {
      TrainingRecipe recipe = line_recipe();
      recipe.optimizer = kind;
      recipe.weight_decay = weight_decay;
      recipe.momentum = momentum;
      const Variable matrix = parameter(full({2, 2}, 1.0, f64), "0.matrix"),
                     vector = parameter(full({2}, 1.0, f64), "vector");
      const auto optimizer = make_optimizer(recipe, {{"0.matrix", matrix}, {"vector", vector}});
      for (int i = 0; i < 2; ++i) {
        backward(add(sum(matrix), sum(vector)));
        optimizer->step(0.1);
      }
      return std::pair{matrix.value()(0, 0), vector.value()(0)};
    };
    const auto plain = moved(0, 0), decayed = moved(0.5, 0), with_momentum = moved(0, 0.5);
    CHECK(plain.second == doctest::Approx(0.8));  // each step moves by the rate: SGD by 1, Adam by a sign
    if (kind == OptimizerKind::muon)
      CHECK(plain.first > 0.9);  // two steps of about 0.1 * 0.2 sqrt(2) * 1/2
    else
      CHECK(plain.first == doctest::Approx(0.8));
    CHECK(decayed.second == plain.second);
    CHECK((with_momentum.first < plain.first) == (kind == OptimizerKind::sgd));
    if (kind != OptimizerKind::adam) CHECK(decayed.first < plain.first);
  }
}

TEST_CASE("Muon has all its numbers from the recipe") {
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)>;
  const auto moved = [](const MakeOptimizer& make) {
    const Variable hidden = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, -1}), "0.matrix"),
                   embedding = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, -1}), "embedding");
    const auto optimizer = make({{"0.matrix", hidden}, {"embedding", embedding}});
    for (int i = 0; i < 3; ++i) {
      backward(add(sum(mul(hidden, hidden)), sum(mul(embedding, embedding))));
      optimizer->step(0.1);
    }
    std::vector<double> all = small::elements(hidden.value());
    for (const double x : small::elements(embedding.value())) all.push_back(x);
    return all;
  };
  const auto moved_by = [&](const optim::MuonOptions& options) {
    return moved([&](const Parameters& parameters) {
      return std::make_unique<optim::Muon>(optim::decay_matrices(parameters, options.weight_decay), options);
    });
  };
  TrainingRecipe recipe = line_recipe();
  recipe.optimizer = OptimizerKind::muon;
  recipe.muon_momentum = 0.6;
  recipe.momentum = 0.3;  // the second one is SGD's
  recipe.beta1 = 0.7;
  recipe.beta2 = 0.8;
  recipe.eps = 0.5;
  recipe.weight_decay = 0.25;
  const optim::MuonOptions same{.momentum = 0.6, .beta1 = 0.7, .beta2 = 0.8, .eps = 0.5, .weight_decay = 0.25};
  const std::vector<double> by_recipe =
      moved([&](const Parameters& parameters) { return make_optimizer(recipe, parameters); });
  CHECK(by_recipe == moved_by(same));
  for (double optim::MuonOptions::*number :
       {&optim::MuonOptions::momentum, &optim::MuonOptions::beta1, &optim::MuonOptions::beta2, &optim::MuonOptions::eps,
        &optim::MuonOptions::weight_decay}) {
    optim::MuonOptions other = same;
    other.*number += 0.1;
    CHECK(by_recipe != moved_by(other));
  }
}
