// Chapter 0. Tests of the toy: its tasks and their text, its training, its attention and its curve of losses.

#include <doctest/doctest.h>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/tasks/toy/figures.h"
#include "apps/tasks/toy/training.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/apps/show/attention/random_attention.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {
ToyTask task(const std::string& name) {
  ToyTask result;
  result.name = name;
  return result;
}
}  // namespace

TEST_CASE("each task has its answer") {
  const Sequence source{4, 3, 6, 5};
  CHECK(task("reverse").answer(source) == Sequence{5, 6, 3, 4});
  CHECK(task("copy").answer(source) == source);
  CHECK(task("sort").answer(source) == Sequence{3, 4, 5, 6});
  CHECK(task("reverse").target(source) == Sequence{1, 5, 6, 3, 4, 2});
  const ToyTask annotated{.name = "copy", .end = -1, .first_symbol = 1, .begin_is_symbol = true};
  CHECK(annotated.target({1, 9, 4}) == Sequence{1, 9, 4});
}

TEST_CASE("draws have the lengths and symbols of the task, and are held out or not as asked") {
  const ToyTask reverse = task("reverse");
  Rng rng(3);
  std::vector<int> lengths(17), symbols(16);
  for (int i = 0; i < 4000; ++i) {
    const bool held_out = i % 4 == 0;
    const Sequence sequence = reverse.draw(rng, held_out);
    REQUIRE(is_held_out(sequence) == held_out);
    REQUIRE(sequence.size() >= 8);
    REQUIRE(sequence.size() <= 16);
    ++lengths[sequence.size()];
    for (i32 token : sequence) ++symbols.at(static_cast<size_t>(token));
  }
  for (size_t n = 8; n <= 16; ++n) CHECK(lengths[n] == doctest::Approx(4000 / 9.0).epsilon(0.2));
  for (size_t s = 0; s < 3; ++s) CHECK(symbols[s] == 0);
  for (size_t s = 3; s < 16; ++s) CHECK(symbols[s] == doctest::Approx(4000 * 12 / 13.0).epsilon(0.1));
}

TEST_CASE("a task too small to hold anything out says so") {
  ToyTask tiny;
  tiny.symbols = 2;
  tiny.min_length = tiny.max_length = 1;
  Rng rng(1);
  const bool first = is_held_out({3}), second = is_held_out({4});
  REQUIRE(first == second);
  CHECK_THROWS_WITH(tiny.draw(rng, !first), doctest::Contains("use more symbols or longer sequences"));
}

TEST_CASE("one sequence in eight is held out, by content alone") {
  const ToyTask reverse = task("reverse");
  Rng rng(5);
  int held_out = 0;
  for (int i = 0; i < 8000; ++i) {
    Sequence sequence(static_cast<size_t>(rng.integer(8, 17)));
    for (i32& token : sequence) token = static_cast<i32>(rng.integer(3, 16));
    held_out += is_held_out(sequence);
  }
  CHECK(held_out > 900);
  CHECK(held_out < 1100);
}

TEST_CASE("batches are padded, and answers end at the end mark") {
  const Tensor batch = batch_of({{5, 6}, {7}}, 3, 0);
  CHECK(same_bits(batch, Tensor::of<i32>({2, 3}, {5, 6, 0, 7, 0, 0})));
  CHECK(small::error_of([] {
          batch_of({{5}, {5, 6, 7, 8}}, 3, 0);
        }) == "toy: a sequence of 4 tokens does not fit into 3");
  const ToyTask reverse = task("reverse");
  const Tensor tokens = Tensor::of<i32>({2, 4}, {5, 6, 2, 0, 3, 3, 3, 3});
  CHECK(written(tokens, 0, reverse) == Sequence{5, 6});
  CHECK(written(tokens, 1, reverse) == Sequence{3, 3, 3, 3});
  const ToyTask annotated{.name = "copy", .end = -1, .first_symbol = 1, .begin_is_symbol = true};
  CHECK(written(tokens, 0, annotated) == Sequence{1, 5, 6, 2, 0});
}

TEST_CASE("text and parse are inverse, with and without blanks") {
  const ToyTask reverse = task("reverse");
  CHECK(reverse.text({3, 4, 15, 2, 0}) == "a b m");
  CHECK(reverse.parse("a b m") == Sequence{3, 4, 15});
  CHECK(reverse.parse("abm") == Sequence{3, 4, 15});
  ToyTask numbers = task("sort");
  numbers.symbols = 100;
  CHECK(numbers.text({3, 102}) == "3 102");
  CHECK(numbers.parse(" 3  102 ") == Sequence{3, 102});
}

TEST_CASE("what cannot be parsed is named") {
  const ToyTask reverse = task("reverse");
  CHECK_THROWS_WITH(reverse.parse("abz"), "toy: symbol 3 of 'abz' is not one of a to m");
  CHECK_THROWS_WITH(reverse.parse("aB"), "toy: symbol 2 of 'aB' is not one of a to m");
  CHECK_THROWS_WITH(reverse.parse("abcdefghijklmabcd"), "toy: a line needs 1 to 16 symbols, got 17");
  CHECK_THROWS_WITH(reverse.parse(" "), "toy: a line needs 1 to 16 symbols, got 0");
  ToyTask numbers = task("sort");
  numbers.symbols = 100;
  CHECK_THROWS_WITH(numbers.parse("3 x"), "toy: symbol 2 of '3 x' is not one of 3 to 102");
  CHECK_THROWS_WITH(numbers.parse("99999999999999999999"),
                    "toy: symbol 1 of '99999999999999999999' is not one of 3 to 102");
}

TEST_CASE("a task survives its JSON, and other JSON is refused") {
  ToyTask original{.name = "sort", .symbols = 9, .min_length = 2, .max_length = 5};
  const ToyTask copy = toy_task(to_json(original));
  CHECK(to_json(copy) == to_json(original));
  CHECK_THROWS_AS(toy_task("{}"), Error);
  CHECK_THROWS_AS(toy_task("nonsense"), Error);
  original.max_length = 1;
  CHECK_THROWS_AS(toy_task(to_json(original)), Error);
}

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

}  // namespace

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

TEST_CASE("sharpness is 1 for one key a row and 1/m for none in particular") {
  CHECK(sharpness({{0, 1}, {1, 0}}) == 1);
  CHECK(sharpness({{0.25, 0.25, 0.25, 0.25}}) == 0.25);
  CHECK(sharpness({{0, 1}, {0.5, 0.5}}) == 0.75);
  CHECK(sharpness({}) == 0);
}

namespace {

// A model with an encoder layer, two decoder layers, and two heads in each.
nn::Transformer two_headed(const ToyTask& task) {
  Rng rng(3);
  return nn::Transformer({.src_vocab_size = task.vocab_size(),
                          .tgt_vocab_size = task.vocab_size(),
                          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 8},
                          .num_encoder_layers = 1,
                          .num_decoder_layers = 2},
                         rng);
}

}  // namespace

TEST_CASE("the sharpest head of a model is the one whose own weights are sharpest") {
  const ToyTask task{.symbols = 5, .min_length = 2, .max_length = 4};
  const nn::Transformer model = two_headed(task);
  const Sequence source{3, 4, 5};
  const AttentionFigure best = sharpest_head(model, task, source);
  CHECK(best.read == std::vector<std::string>{"a", "b", "c"});
  CHECK(best.written == std::vector<std::string>{"c", "b", "a", "."});
  REQUIRE(best.weights.size() == 4);
  // By hand: the weights of every layer and head for this one sequence.
  const Sequence target = task.target(source);
  const AttentionMaps maps =
      attention_maps(model, batch_of({source}, task.source_length(), task.pad),
                     slice(batch_of({target}, static_cast<i64>(target.size()), task.pad), 1, 0, -1));
  double sharpest = 0;
  for (const Tensor& layer : maps.decoder_cross) {
    for (i64 head = 0; head < 2; ++head) {
      double total = 0;
      for (i64 i = 0; i < 4; ++i) total += std::max({layer(0, head, i, 0), layer(0, head, i, 1), layer(0, head, i, 2)});
      sharpest = std::max(sharpest, total / 4);
    }
  }
  CHECK(sharpness(best.weights) == doctest::Approx(sharpest).epsilon(1e-6));
  CHECK(best.weights[2][1] == maps.decoder_cross[static_cast<size_t>(best.layer)](0, best.head, 2, 1));
}

TEST_CASE("the page of the toy has the weights of every head for each sequence, without the padding") {
  const ToyTask task{.symbols = 5, .min_length = 2, .max_length = 4};
  const nn::Transformer model = two_headed(task);
  const nlohmann::json data = nlohmann::json::parse(attention_page(model, task, {{3, 4, 5}, {4, 4}}).json());
  const HeadsFigure heads = every_head(model, task, {3, 4, 5});
  REQUIRE(data.at("pairs").size() == 2);
  CHECK(data["pairs"][1].at("source") == "b b");
  const nlohmann::json& shown = data["pairs"][0].at("attentions");
  CHECK(shown.at(2).at("rows") == nlohmann::json{"c", "b", "a", "."});
  const auto check_maps = [](const nlohmann::json& layers, const std::vector<HeadMap>& maps) {
    for (const HeadMap& map : maps) {
      const nlohmann::json& weights = layers.at(static_cast<size_t>(map.layer)).at(static_cast<size_t>(map.head));
      REQUIRE(weights.size() == map.weights.size());
      for (size_t i = 0; i < map.weights.size(); ++i)
        for (size_t j = 0; j < map.weights[i].size(); ++j) CHECK(small::shows(weights.at(i).at(j), map.weights[i][j]));
    }
  };
  check_maps(shown.at(0).at("layers"), heads.encoder);
  check_maps(shown.at(1).at("layers"), heads.decoder_self);
  check_maps(shown.at(2).at("layers"), heads.decoder_cross);
}

TEST_CASE("an anti-diagonal looks like one") {
  std::ostringstream out;
  print_attention(out, {.task = "reverse", .written = {"b", "a"}, .read = {"a", "b"}, .weights = {{0, 1}, {0.7, 0.3}}});
  CHECK(out.str() ==
        "     a b \n"
        "  b |  ██|\n"
        "  a |▓▓░░|\n");
}

TEST_CASE("the smallest loss is that of a model that says the smoothed target") {
  CHECK(least_loss(16, 0) == 0);
  Tensor best = full({1, 5}, std::log(0.02), f64);
  best(0, 3) = std::log(0.92);
  const Variable loss = cross_entropy(constant(best), Tensor::of<i32>({1}, {3}), {.label_smoothing = 0.1});
  CHECK(least_loss(5, 0.1) == doctest::Approx(loss.item()).epsilon(1e-12));
}

TEST_CASE("at most 120 points, each the mean of its steps, the last of what is left") {
  const ToyRecipe recipe;
  std::vector<StepResult> steps;
  for (int i = 1; i <= 121; ++i) steps.push_back({.loss = static_cast<double>(i), .accuracy = 0.5});
  const LossFigure figure = loss_curve(recipe, steps);
  CHECK(figure.task == "reverse");
  CHECK(figure.steps == 121);
  CHECK(figure.every == 2);
  CHECK(figure.guess == doctest::Approx(std::log(16.0)));
  REQUIRE(figure.loss.size() == 61);
  CHECK(figure.loss[0] == 1.5);
  CHECK(figure.loss[60] == 121);
  CHECK(figure.accuracy[60] == 0.5);
  CHECK(loss_curve(recipe, {{.loss = 1, .accuracy = 0}}).loss.size() == 1);
}
