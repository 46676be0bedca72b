// Chapter 0. Tests of the toy's training: it learns, and its bits do not depend on the number of threads.
#include "apps/tasks/toy/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/machine/parallel.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// Small enough for a test; odd sizes, so that no tile or chunk comes out even.
ToyRecipe small_toy_recipe() {
  ToyRecipe recipe;
  recipe.task.symbols = 5;
  recipe.task.min_length = 2;
  recipe.task.max_length = 5;
  recipe.model.layer.d_model = 15;
  recipe.model.layer.num_heads = 3;
  recipe.model.layer.d_ff = 37;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.steps = 30;
  recipe.batch = 7;
  recipe.warmup = 10;
  return recipe;
}

std::string hash_after(const ToyRecipe& recipe, int threads) {
  const small::Threads wanted(threads);
  ToyTraining training(recipe);
  while (!training.trainer.finished()) training.trainer.step();
  return training.trainer.hash();
}

}  // namespace

TEST_CASE("training gives the same bits for 1, 2, 3, 4 and 8 threads, dropout on") {
  const ToyRecipe recipe = small_toy_recipe();
  REQUIRE(recipe.model.layer.dropout > 0);
  const std::string hash = hash_after(recipe, 1);
  for (int threads : {2, 3, 4, 8}) CHECK(hash_after(recipe, threads) == hash);
  ToyRecipe other = recipe;
  other.seed = 2;
  CHECK(hash_after(other, 1) != hash);
}

TEST_CASE("slow: the default model gives the same bits for 1, 2 and 4 threads") {
  ToyRecipe recipe;
  recipe.steps = 10;
  const std::string hash = hash_after(recipe, 1);
  CHECK(hash_after(recipe, 2) == hash);
  CHECK(hash_after(recipe, 4) == hash);
}

TEST_CASE("measuring the time to come changes nothing") {
  const ToyRecipe recipe = small_toy_recipe();
  ToyTraining measured(recipe), plain(recipe);
  CHECK(measured.trainer.expected_seconds(measured.trainer.seconds_of_step()) > 0);
  for (int i = 0; i < 3; ++i) {
    measured.trainer.step();
    plain.trainer.step();
  }
  CHECK(measured.trainer.hash() == plain.trainer.hash());
}

TEST_CASE("a toy that was interrupted goes on to the same bits, dropout on, with micro-batches too") {
  for (const i64 micro_batches : {1, 2}) {
    ToyRecipe recipe = small_toy_recipe();
    recipe.micro_batches = micro_batches;
    ToyTraining whole(recipe), first(recipe), second(recipe);
    for (int i = 0; i < 8; ++i) whole.trainer.step();
    for (int i = 0; i < 3; ++i) first.trainer.step();
    second.trainer.load_state(first.trainer.state());
    CHECK(second.trainer.steps_done() == 3);
    for (int i = 0; i < 5; ++i) second.trainer.step();
    CHECK(second.trainer.hash() == whole.trainer.hash());
  }
}

TEST_CASE("the toy's validation loss is that of sequences held out, the same each time, and moves no training") {
  const ToyRecipe recipe = small_toy_recipe();
  ToyTraining judged(recipe), plain(recipe);
  const double at_first = judged.task.validation_loss();
  CHECK(at_first == doctest::Approx(std::log(recipe.task.vocab_size())).epsilon(0.3));
  CHECK(judged.task.validation_loss() == at_first);
  while (!judged.trainer.finished()) {
    judged.trainer.step();
    plain.trainer.step();
    judged.task.validation_loss();
  }
  CHECK(judged.task.validation_loss() < at_first);
  CHECK(judged.trainer.hash() == plain.trainer.hash());
  ToyRecipe smoother = recipe;  // label smoothing is of the training, not of what is judged
  smoother.smoothing = 0.5;
  CHECK(ToyTraining(smoother).task.validation_loss() == at_first);
}

TEST_CASE("a step that meets NaN is not made, and the error names the operation that gave it first") {
  ToyTraining training(small_toy_recipe());
  training.trainer.step();
  for (NamedParameter& p : training.task.model.parameters())
    if (p.name == "encoder.layers.0.linear1.weight") p.value.mutable_value().write<float>()[4] = NAN;
  const std::string before = training.trainer.hash();
  const std::string error = small::error_of([&] { training.trainer.step(); });
  CHECK(error.starts_with("toy: step 2 was not made, because a number is not finite; a smaller --rate or"));
  CHECK(error.find("\ntrain: the loss is not finite") != std::string::npos);
  CHECK(error.find("\nlinear_relu (operation ") != std::string::npos);
  CHECK(error.find("1 NaN, first at [0, 4]  from parameter encoder.layers.0.linear1.weight") != std::string::npos);
  CHECK(training.trainer.hash() == before);
  CHECK(training.trainer.steps_done() == 1);
}

TEST_CASE("the learning rate warms up, falls, and cools down over the last part of the steps") {
  ToyRecipe recipe;
  recipe.steps = 1000;
  recipe.warmup = 100;
  recipe.cooldown = 0.5;
  recipe.width = recipe.model.layer.d_model;
  CHECK(recipe.rate_of(50) == doctest::Approx(recipe.rate_of(100) / 2));
  CHECK(recipe.rate_of(400) == doctest::Approx(recipe.rate_of(100) / 2));
  CHECK(recipe.rate_of(1000) > 0);
  CHECK(recipe.rate_of(1000) < recipe.rate_of(500) / 100);
  recipe.cooldown = 0;
  CHECK(recipe.rate_of(1000) == doctest::Approx(recipe.rate_of(250) / 2));
}

TEST_CASE("slow: a small model learns to copy, and the exam says so") {
  ToyRecipe recipe;
  recipe.task.name = "copy";
  recipe.task.symbols = 4;
  recipe.task.min_length = 2;
  recipe.task.max_length = 4;
  recipe.model.layer.d_model = 32;
  recipe.model.layer.d_ff = 64;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.steps = 400;
  recipe.batch = 32;
  recipe.warmup = 100;
  ToyTraining training(recipe);
  CHECK(examine(training.task.model, recipe.task, 50, 1).right < 10);
  double first = 0, last = 0;
  for (i64 i = 0; i < recipe.steps; ++i) {
    const StepResult step = training.trainer.step();
    if (i == 0) first = step.loss;
    last = step.loss;
  }
  CHECK(last < first / 2);
  const ToyExam exam = examine(training.task.model, recipe.task, 50, 1);
  CHECK(exam.right >= 48);
  for (const Sequence& source : exam.sources) CHECK(is_held_out(source));
}

TEST_CASE("the Annotated Transformer's recipe has its sizes") {
  ToyRecipe recipe = annotated_recipe();
  recipe.width = recipe.model.layer.d_model;
  CHECK(recipe.config().src_vocab_size == 11);
  CHECK(recipe.steps == 20 * 20);
  CHECK(recipe.rate_of(400) == doctest::Approx(0.5 / std::sqrt(512.0 * 400.0)));
}
