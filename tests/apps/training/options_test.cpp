// Chapter 9. Tests of the options of every training: its recipe, its outputs, --save FOLDER/, the memory it may take.
#include "apps/training/options.h"

#include <doctest/doctest.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/program/machine.h"
#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;
using small::contains;

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

namespace {

// A folder with the files of a training, and what `check_outputs` says of them.
struct Outputs {
  std::string problem(const RunOptions& run, const std::vector<NamedFile>& others = {}) const {
    return small::error_of([&] { check_outputs(run, TrainingFiles("test", model), {{"--source", source}}, others); });
  }
  TemporaryFolder folder;
  std::string model = folder / "model", source = folder / "source", config = folder / "config", log = folder / "log";
};

}  // namespace

TEST_CASE("files of their own names may be written, and a name that is not given is none") {
  const Outputs outputs;
  CHECK(outputs.problem({}) == "");
  CHECK(outputs.problem({.config = outputs.config, .log = outputs.log}, {{"--losses", outputs.folder / "losses"}}) ==
        "");
  CHECK(outputs.problem({}, {{"--losses", ""}, {"--attention", ""}}) == "");
}

TEST_CASE("no output replaces a text, a configuration, a file of the training, a model, or another output") {
  const Outputs outputs;
  const auto said = [&](const std::string& path) { return outputs.problem({.config = outputs.config, .log = path}); };
  CHECK(said(outputs.source) == "test: --log " + outputs.source + " would write over --source " + outputs.source);
  CHECK(contains(said(outputs.folder / "./source"), " would write over --source "));
  CHECK(contains(said(outputs.config), " would write over the file of --config, " + outputs.config));
  CHECK(contains(said(outputs.model + ".lock"), " would write over the files of --save " + outputs.model));
  CHECK(contains(said("/nowhere/log"), "No such file or directory"));
  write_safetensors(outputs.log, {{"a", zeros({2})}});
  CHECK(contains(said(outputs.log), " is a file that holds a model"));
  const NamedFile losses{"--losses", outputs.folder / "both"};
  CHECK(contains(outputs.problem({.log = losses.path}, {losses}), "--log and --losses name the same file"));
  CHECK(contains(outputs.problem({}, {{"--losses", outputs.source}}), "--losses " + outputs.source + " would write"));
}

TEST_CASE("no model replaces a text") {
  Outputs outputs;
  outputs.source = outputs.model;
  CHECK(outputs.problem({}) == "test: --save " + outputs.model + " would write over --source " + outputs.model);
}

TEST_CASE("--save FOLDER/ keeps model and log in a new folder, where --resume, --load and report find them") {
  const TemporaryFolder folder;
  const std::string place = folder / "runs/first", quoted = "'" + place + "/' ";
  const auto there = [&](const std::string& name) { return std::filesystem::exists(place + "/" + name); };
  const std::string limit = "--time-limit 0.002 ";  // it stops as with Ctrl-C
  const Result stopped = errors("toy --steps 1000000 " + small_toy_options + limit + "--save " + quoted);
  REQUIRE(stopped.exit_code == 130);
  CHECK(contains(stopped.text, "; to resume: orrery toy --resume " + place + "/\n"));
  CHECK(there("model.safetensors"));
  CHECK(there("model.safetensors.resume"));
  const std::string log = contents(place + "/log.jsonl");
  CHECK(contains(log, "{\"step\":1,"));
  REQUIRE(run("toy " + limit + "--resume " + quoted).exit_code == 130);
  CHECK(contents(place + "/log.jsonl").starts_with(log));
  CHECK(contents(place + "/log.jsonl").size() > log.size());
  CHECK(run("toy --load '" + place + "' < /dev/null").exit_code == 0);
  const Result page = run("report '" + place + "'");
  CHECK(page.exit_code == 0);
  CHECK(contains(page.text, "log.jsonl"));
  CHECK(contains(page.text, "model.safetensors"));
}

TEST_CASE("--save FOLDER/ leaves another --log alone, and makes no folder for --print-config") {
  const TemporaryFolder folder;
  REQUIRE(run(quick_toy + "--log '" + (folder / "own") + "' --save '" + (folder / "run/") + "'").exit_code == 0);
  CHECK(std::filesystem::exists(folder / "own"));
  CHECK_FALSE(std::filesystem::exists(folder / "run/log.jsonl"));
  const Result stopped = errors("toy --steps 1000000 " + small_toy_options + "--time-limit 0.002 --log '" +
                                (folder / "second") + "' --save '" + (folder / "stopped/") + "'");
  CHECK(contains(stopped.text, "; to resume: orrery toy --resume " + (folder / "stopped/model.safetensors") +
                                   " --log " + (folder / "second") + "\n"));
  REQUIRE(run(quick_toy + "--print-config --save '" + (folder / "other/") + "'").exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "other"));
  set_contents(folder / "file", "text");
  const Result refused = run(quick_toy + "--save '" + (folder / "file/run/") + "'", "2>&1");
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.text, "orrery: make the folder " + (folder / "file") + ": File exists\n"));
}

TEST_CASE("without --max-memory the limit is nine tenths of what is free, and no more than the machine has") {
  if (!small::counts_memory()) return;
  const SystemMemory memory = memory_of(SystemFiles());
  REQUIRE(memory.available > 0);
  const struct RestoredLimit {
    i64 before = memory_counters().limit_bytes;
    ~RestoredLimit() { limit_memory(before); }
  } restored;
  RunOptions run;
  run.threads = threads();
  set_up(run);
  const i64 limit = memory_counters().limit_bytes;
  CHECK(limit <= memory.total / 10 * 9);
  const double share = static_cast<double>(limit) / static_cast<double>(memory.available);
  CHECK(share > 0.9 / 1.5);  // other programs take and free memory meanwhile
  CHECK(share < 0.9 * 1.5);
}

TEST_CASE("promise 22: a training that --max-memory is too small for ends with an error, and others run") {
  if (!small::counts_memory()) return;
  const std::string toy = "toy --steps 2 --warmup 1 --threads 1 --max-memory ",
                    reason = " bytes that tensors may take (limit_memory, --max-memory)\n";
  const auto error_of = [&](const std::string& command) {
    const Result result = errors(command);
    CHECK(result.exit_code == 1);
    CHECK(result.text.ends_with(reason));
    return line(result.text, -1);
  };
  const TemporaryFolder folder;
  const std::string quoted = " --save '" + (folder / "model") + "'";
  const Result in_first_step = errors(toy + "8" + quoted);
  CHECK(in_first_step.exit_code == 1);
  CHECK(contains(in_first_step.text, reason));
  CHECK_FALSE(std::filesystem::exists(folder / "model"));
  CHECK(run(toy + "100").exit_code == 0);
  check_usage_error("toy --max-memory 0", "--max-memory", "from 1 to");

  const small::AnimalText text = small::animal_text();
  set_contents(folder / "a.en", text.english);
  set_contents(folder / "a.de", text.german);
  const std::string translate = "translate train --steps 2 --segmented --source '" + (folder / "a.en") +
                                "' --target '" + (folder / "a.de") + "' --max-memory ";
  CHECK(contains(error_of("lm train --steps 2 --max-memory 3"),
                 "lm: a model of 804096 parameters: tensor: shape [804096] of f32 takes 3216384 bytes, "));
  CHECK(contains(error_of(translate + "4"), " parameters: tensor: "));
  std::filesystem::resize_file(folder / "a.de", 6 << 20);
  CHECK(contains(error_of(translate + "10"), "translate: the text: tensor: "));
}
