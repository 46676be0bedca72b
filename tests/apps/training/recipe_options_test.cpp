// Chapter 9. Tests of the options for a recipe: each field has one, and what contradicts is said in their terms.
#include "apps/training/options.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "apps/program/option_file.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// A recipe and its options on a command line.
struct RecipeCommand {
  explicit RecipeCommand(const TrainingRecipe& defaults, const AutomaticValues& automatic = {}) : recipe(defaults) {
    app.option_defaults()->always_capture_default();
    add_recipe_options(app, recipe, automatic);
  }
  TrainingRecipe recipe;
  CLI::App app;
};

std::string usage_problem_of(const TrainingRecipe& recipe) {
  try {
    check_recipe_options(recipe);
    return "";
  } catch (const CLI::ParseError& error) { return error.what(); }
}

// A value that each option allows, other than line_recipe's.
Json other_value(const std::string& option) {
  if (option == "optimizer") return "sgd";
  if (option == "schedule") return "cosine";
  for (const std::string counted :
       {"steps", "micro-batches", "warmup", "average-last", "evaluate-every", "patience", "seed"})
    if (option == counted) return 7;
  return 0.25;
}

}  // namespace

TEST_CASE("every field of a recipe has one option, which shows its default and sets it, and it alone") {
  RecipeCommand command(small::line_recipe());
  const Json defaults = values_of(options_of(command.app));
  std::vector<std::string> fields = field_names(command.recipe);
  fields.push_back("seed");
  CHECK(defaults.size() == fields.size());
  for (std::string field : fields) {
    CAPTURE(field);
    std::replace(field.begin(), field.end(), '_', '-');
    REQUIRE(defaults.contains(field));
    const Json other = other_value(field);
    RecipeCommand changed(small::line_recipe());
    changed.app.parse("--" + field + " " + (other.is_string() ? other.get<std::string>() : other.dump()));
    Json expected = defaults;
    expected[field] = other;
    CHECK(values_of(options_of(changed.app)) == expected);
    const std::string of_json = to_json(changed.recipe), before = to_json(command.recipe);
    CHECK((of_json == before) == (field == "seed"));
  }
}

TEST_CASE("an automatic option shows no default in the help, and has no value until it is set") {
  TrainingRecipe recipe;
  recipe.warmup = TrainingRecipe::automatic;
  RecipeCommand command(recipe, {.warmup = "a tenth"});
  CHECK(small::contains(command.app.help(), "; if not given, a tenth\n"));
  CHECK_FALSE(small::contains(command.app.help(), "-1"));
  CHECK_FALSE(values_of(options_of(command.app)).contains("warmup"));
  command.app.parse("--warmup 5");
  CHECK(values_of(options_of(command.app)).at("warmup") == 5);
  CHECK_FALSE(small::contains(RecipeCommand(recipe).app.help(), "if not given"));
}

TEST_CASE("recipes with which no training is possible are wrong usage, in terms of the options") {
  TrainingRecipe recipe = small::line_recipe();
  CHECK(usage_problem_of(recipe) == "");
  recipe.schedule = Schedule::cosine;
  recipe.warmup = 12;
  CHECK(usage_problem_of(recipe) == "recipe: --warmup (12) must be below --steps, 12");
  recipe.schedule = Schedule::noam;
  recipe.warmup = 0;
  CHECK(usage_problem_of(recipe) == "recipe: --schedule noam needs a --warmup of at least 1");
  recipe = small::line_recipe();
  recipe.average = 0.9;
  recipe.average_last = 2;
  CHECK(usage_problem_of(recipe) ==
        "recipe: --average (0.9) and --average-last (2) exclude each other: set one of them to 0");
  recipe = small::line_recipe();
  recipe.evaluate_every = 0;
  recipe.patience = 2;
  CHECK(usage_problem_of(recipe) == "recipe: --patience and --average-last need --evaluate-every");
}

TEST_CASE("the numbers for each parameter are those of optimiser, best model and averages") {
  TrainingRecipe recipe;
  CHECK(numbers_for_each_parameter(recipe) == 3);  // the parameter and Adam's two
  recipe.optimizer = OptimizerKind::muon;          // at most as many as AdamW
  CHECK(numbers_for_each_parameter(recipe) == 3);
  recipe.evaluate_every = 10;
  recipe.average_last = 4;
  CHECK(numbers_for_each_parameter(recipe) == 8);
  recipe.average_last = 0;
  recipe.average = 0.9;
  recipe.optimizer = OptimizerKind::sgd;
  CHECK(numbers_for_each_parameter(recipe) == 3);
  recipe.momentum = 0.9;
  CHECK(numbers_for_each_parameter(recipe) == 4);
}
