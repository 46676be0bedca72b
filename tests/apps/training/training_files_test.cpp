// Chapter 9. Tests of the files of a training: what was saved comes back, a file that is not a training of the program
// is refused, and nobody's work is lost.
#include "apps/training/training_files.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "apps/program/options.h"
#include "core/files/safetensors.h"
#include "core/products/blas.h"
#include "core/products/gemm.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;
using small::error_of;
using small::line_recipe;
using small::LineTraining;

namespace {

// A line whose files are in a folder.
struct SavedLine {
  explicit SavedLine(const std::string& path, const TrainingRecipe& recipe = line_recipe())
      : training(recipe), files("line", path) {}
  void train_until(i64 steps) { small::train_until(training.trainer, steps); }
  bool keep() { return files.keep(training.trainer, parts); }

  LineTraining training;
  TrainingFiles files;
  SavedParts parts{.save_model =
                       [this](const std::string& path) {
                         write_safetensors(path, {{"a", training.task.a.value()}, {"b", training.task.b.value()}});
                       },
                   .origin = {{"colour", "blue"}}};
};

double saved_a(const std::string& path) { return read_safetensors(path).tensors.at("a").item(); }

// Replaces a part of the metadata of a file.
void edit(const std::string& path, const std::string& key, const std::string& from, const std::string& to) {
  TensorFile file = read_safetensors(path);
  std::string& text = file.metadata.at(key);
  REQUIRE(small::contains(text, from));
  text.replace(text.find(from), from.size(), to);
  write_safetensors(path, file.tensors, file.metadata);
}

}  // namespace

TEST_CASE("an unfinished training comes back with its recipe, its seed, its state and what the program added") {
  const TemporaryFolder folder;
  TrainingRecipe recipe = line_recipe();
  recipe.average = 0.5;
  recipe.seed = 7;
  recipe.patience = 5;
  for (const i64 stop : {2, 3, 5}) {  // before, at and after an evaluation
    CAPTURE(stop);
    SavedLine line(folder / "line", recipe);
    line.train_until(stop);
    use_products({.by_blas = stop != 3, .bf16 = stop == 3});
    CHECK(line.keep());
    use_products({});
    const UnfinishedTraining read = read_unfinished("line", line.files);
    CHECK(to_json(read.recipe) == to_json(recipe));
    CHECK(read.recipe.seed == 7);
    CHECK(read.products.by_blas == (stop != 3));
    CHECK(read.products.bf16 == (stop == 3));
    CHECK(read.kernel == (stop == 3 ? bf16_arithmetic() : blas_info().kernel));
    CHECK(entry_of(read, "line", "colour") == "blue");
    CHECK(error_of([&] { entry_of(read, "line", "shape"); }) ==
          "line: " + line.files.resume() + " is not an unfinished training (it has no shape)");
    CHECK(read.state.best_step == (stop < 3 ? 0 : 3));
    LineTraining whole(recipe), resumed(read.recipe);
    resumed.trainer.load_state(read.state);
    CHECK(resumed.trainer.steps_done() == stop);
    for (LineTraining* each : {&whole, &resumed}) {
      small::train_until(each->trainer, recipe.steps);
      CHECK(each->trainer.finished());
    }
    CHECK(resumed.trainer.hash() == whole.trainer.hash());
    CHECK(resumed.trainer.best_score() == whole.trainer.best_score());
  }
}

TEST_CASE("the model in the file is that of the best evaluation, also if writing it failed at first") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  line.training.task.validation = {0.2, 0.5, 0.1, 0.4};
  line.train_until(2);
  CHECK(line.keep());  // before the first evaluation: the model as it is
  CHECK(saved_a(line.files.model()) == line.training.task.a.value().item());
  line.train_until(3);
  const double at_3 = line.training.task.a.value().item();
  const auto save = line.parts.save_model;
  line.parts.save_model = [](const std::string&) { fail("write line", "No space left on device"); };
  CHECK_FALSE(line.keep());
  CHECK(line.files.problem() == "write line: No space left on device");
  CHECK(error_of([&] { line.files.check_kept(); }) ==
        "line: the model is not saved: write line: No space left on device");
  CHECK(read_unfinished("line", line.files).state.steps_done == 3);  // the state is written before the model
  line.parts.save_model = save;
  line.train_until(6);
  CHECK(line.keep());
  CHECK(error_of([&] { line.files.check_kept(); }) == "");
  CHECK(saved_a(line.files.model()) == at_3);
  line.train_until(9);
  const double at_9 = line.training.task.a.value().item();
  CHECK(line.keep());
  CHECK(saved_a(line.files.model()) == at_9);
  line.train_until(11);
  std::filesystem::remove(line.files.model());
  CHECK(line.keep());
  CHECK_FALSE(std::filesystem::exists(line.files.model()));  // the best one was written already
}

TEST_CASE("the end writes the model as it is, and removes the state only of a finished training") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  line.train_until(5);
  CHECK(line.keep());
  CHECK(line.files.end(line.parts, false));
  CHECK(saved_a(line.files.model()) == line.training.task.a.value().item());
  CHECK(std::filesystem::exists(line.files.resume()));
  CHECK(line.files.end(line.parts, true));
  CHECK_FALSE(std::filesystem::exists(line.files.resume()));
  CHECK(error_of([&] { read_unfinished("line", line.files); }) == "line: there is no " + line.files.resume() +
                                                                      ": the training of " + line.files.model() +
                                                                      " is finished, or was never started");
  SavedLine unsaved("");
  CHECK(unsaved.keep());
  CHECK(unsaved.files.end(unsaved.parts, true));
  CHECK_FALSE(unsaved.files.used());
  CHECK(folder.count() == 1);
}

TEST_CASE("a model that replaces an unfinished one never stands beside the other's state") {
  const TemporaryFolder folder;
  {
    SavedLine old(folder / "line");
    old.train_until(4);
    REQUIRE(old.keep());
  }
  SavedLine line(folder / "line");
  line.files.begin(true);
  const std::string old_model = contents(line.files.model()), old_state = contents(line.files.resume());
  CHECK_FALSE(line.files.end(line.parts, true));
  CHECK(line.files.problem() == "line: the state in " + line.files.resume() + " is of an older training, or may be");
  std::filesystem::create_directory(line.files.resume() + ".tmp");  // the state cannot be written
  CHECK(small::contains(error_of([&] { line.files.take_place(line.training.trainer, line.parts); }),
                        "line: the model is not saved, and the older training stays: write " + line.files.resume()));
  CHECK(contents(line.files.model()) == old_model);
  CHECK(contents(line.files.resume()) == old_state);
  std::filesystem::remove(line.files.resume() + ".tmp");
  line.files.take_place(line.training.trainer, line.parts);
  CHECK(read_unfinished("line", line.files).state.steps_done == 0);
  CHECK(contents(line.files.model()) == old_model);  // what a crash leaves here is ours to resume
  line.train_until(1);
  line.files.take_place(line.training.trainer, line.parts);  // nothing more to replace
  CHECK(read_unfinished("line", line.files).state.steps_done == 0);
  CHECK(line.files.end(line.parts, true));
  CHECK_FALSE(std::filesystem::exists(line.files.resume()));
  SavedLine old(folder / "other"), full(folder / "other");
  old.train_until(4);
  REQUIRE(old.keep());
  full.train_until(4);
  std::filesystem::create_directory(full.files.resume() + ".tmp");  // the state cannot be written
  const std::string model = contents(full.files.model()), state = contents(full.files.resume());
  CHECK_FALSE(full.keep());
  CHECK(contents(full.files.model()) == model);  // both of the old training
  CHECK(contents(full.files.resume()) == state);
}

TEST_CASE("a file that is not an unfinished training, of another program or damaged, is refused with its name") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  line.train_until(4);
  const auto refusal = [&](const std::function<void(const std::string&)>& damage) {
    REQUIRE(line.keep());
    damage(line.files.resume());
    const std::string error = error_of([&] { read_unfinished("line", line.files); });
    CHECK(small::contains(error, line.files.resume()));
    return error;
  };
  const auto edited = [&](const std::string& key, const std::string& from, const std::string& to) {
    return refusal([&](const std::string& path) { edit(path, key, from, to); });
  };
  CHECK(edited("program", "line", "lm") == "line: " + line.files.resume() + " is a training of orrery lm");
  CHECK(small::contains(edited("recipe", "\"steps\":12", "\"steps\":0"), "steps must be positive"));
  CHECK(small::contains(edited("standing", "\"steps_done\":4", "\"steps_done\":13"), "steps_done"));
  CHECK(small::contains(edited("standing", "\"best_step\":3", "\"best_step\":5"), "best_step"));
  CHECK(small::contains(edited("standing", "\"positions\"", "\"places\""), "positions"));
  CHECK(small::contains(edited("standing", "\"products\":\"own\"", "\"products\":\"mkl\""), "products cannot be mkl"));
  CHECK(
      small::contains(edited("standing", "\"precision\":\"f32\"", "\"precision\":\"f16\""), "precision cannot be f16"));
  CHECK(small::contains(
      edited("standing", "\"evaluations_since_best\":0", "\"evaluations_since_best\":9223372036854775807"),
      "evaluations_since_best must be"));
  CHECK(refusal([](const std::string& path) {
          write_safetensors(path, {{"a", zeros({2})}});
        }).ends_with("is not an unfinished training (it has no program)"));
  refusal([](const std::string& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9); });
  refusal([](const std::string& path) { std::ofstream(path) << "mine"; });
}

TEST_CASE("a new training does not replace an old one unasked, and two trainings at once have two files") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  line.train_until(4);
  REQUIRE(line.keep());
  TrainingFiles again("line", folder / "line");
  CHECK(small::contains(error_of([&] { again.begin(false); }), "holds an unfinished training: continue it with"));
  TrainingFiles replacing("line", folder / "line");
  CHECK(replacing.writes(folder / "./line.resume"));
  CHECK_FALSE(replacing.writes(folder / "other"));
  CHECK(error_of([&] { TrainingFiles("line", "").begin(false); }) == "");
  CHECK(error_of([&] { TrainingFiles("line", folder / "line.resume").go_on(); }) ==
        "line: --resume " + (folder / "line.resume") +
            ": names that end in .resume are those of files beside a model; name another, such as " +
            shell_quoted(folder / "line"));
  constexpr i64 too_many = i64{1} << 55;
  CHECK(small::contains(error_of([&] { replacing.check_room(line_recipe(), too_many); }), "do not fit there"));
  CHECK(error_of([&] { replacing.check_room(line_recipe(), 1000); }) == "");
  TrainingRecipe endless = line_recipe();
  endless.steps = i64{1} << 55;  // the state has the loss of each
  CHECK(small::contains(error_of([&] { replacing.check_room(endless, 1000); }), "do not fit there"));
}

TEST_CASE("a text is refused before the training if it could not be saved beside so few parameters") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  u64 state_bytes = 0, others = 16'000 + line.parts.origin.at("colour").size();
  for (const auto& [name, tensor] : line.training.trainer.state().tensors) {
    state_bytes += static_cast<u64>(tensor.count() * bytes_of(tensor.dtype()));
    others += 2 * name.size() + 9;  // and a checksum
  }
  const auto problem_of = [&](u64 length) {
    line.parts.origin["vocabulary"] = std::string(length, 'x');
    return error_of([&] { line.files.check_texts(line.training.trainer, line.parts); });
  };
  line.parts.model_bytes = state_bytes + 1000;
  CHECK(problem_of(longest_text(state_bytes) - others) == "");
  CHECK(line.keep());
  CHECK(problem_of(longest_text(state_bytes)) != "");
  CHECK_FALSE(line.keep());  // it would have failed
  line.parts.model_bytes = 8;
  const u64 longest = longest_text(8) - others;
  CHECK(problem_of(longest) == "");
  CHECK(problem_of(longest + 1) == "line: --save " + (folder / "line") +
                                       ": the model is too small to be saved with its vocabulary, " +
                                       std::to_string(longest + 1) +
                                       " bytes beside 8 of parameters; use a larger model, or fewer tokens or files");
  CHECK(error_of([&] { TrainingFiles("line", "").check_texts(line.training.trainer, line.parts); }) == "");
}

TEST_CASE("the state of a version that had no bf16 is one of f32") {
  const TemporaryFolder folder;
  SavedLine line(folder / "line");
  line.train_until(4);
  REQUIRE(line.keep());
  edit(line.files.resume(), "standing", "\"precision\":\"f32\",", "");
  CHECK_FALSE(read_unfinished("line", line.files).products.bf16);
}

TEST_CASE("a resumed training computes as it began, and another kernel's bits are warned of") {
  std::ostringstream heard;
  std::streambuf* const before = std::cerr.rdbuf(heard.rdbuf());
  const auto computed_as = [](const ProductOptions& products, const std::string& kernel) {
    compute_as({.recipe = {}, .state = {}, .products = products, .kernel = kernel, .metadata = {}});
    return uses_blas() == products.by_blas && uses_bf16() == products.bf16;
  };
  CHECK(computed_as({.by_blas = true}, blas_info().kernel));
  CHECK(computed_as({.bf16 = true}, bf16_arithmetic()));
  CHECK(computed_as({}, "Other"));
  const std::string silent = heard.str();
  CHECK(computed_as({.by_blas = true}, "Other"));
  CHECK(computed_as({.bf16 = true}, "AMY"));
  std::cerr.rdbuf(before);
  use_products({});
  CHECK(silent == "");
  CHECK(heard.str() ==
        "warning: this training began with OpenBLAS's kernel Other; its bits will not be those of an uninterrupted "
        "one\nwarning: this training began with bf16 by AMY; its bits will not be those of an uninterrupted one\n");
}

namespace {

const std::string tiny_toy = "toy --threads 1 " + small_toy_options;

}  // namespace

TEST_CASE("a model or an unfinished training is begun anew only where that is allowed, and another file never") {
  const orrery::TemporaryFolder folder;
  orrery::ModelFile file("test", folder / "my model");
  const auto refusal = [&](bool overwrite) { return error_of([&] { file.check_free(overwrite); }); };
  CHECK(refusal(false) == "");
  written(file.path(), "");  // as mktemp leaves it
  CHECK(refusal(false) == "");
  std::filesystem::remove(file.path());
  orrery::write_safetensors(file.path(), {{"x", orrery::zeros({2})}});
  CHECK(refusal(false) ==
        "test: " + file.path() + " already holds a model: --overwrite replaces it, another name keeps both");
  CHECK(refusal(true) == "");
  orrery::write_safetensors(file.resume(), {{"x", orrery::zeros({2})}});
  CHECK(refusal(false) == "test: " + file.resume() + " holds an unfinished training: continue it with --resume '" +
                              file.path() + "', or start again with --overwrite");
  CHECK(refusal(true) == "");
  std::filesystem::remove(file.resume());
  written(file.resume(), "mine");
  CHECK(refusal(true).ends_with("is a file that holds no model; name another, or remove it"));
}

TEST_CASE("room is needed for the model, the unfinished training, and what replaces them") {
  const orrery::TemporaryFolder folder;
  const orrery::ModelFile file("test", folder / "model");
  CHECK(error_of([&] { file.check_room(1000, 5000); }) == "");
  const orrery::i64 half = static_cast<orrery::i64>(std::filesystem::space(folder.path()).available / 5 * 2);
  CHECK(error_of([&] {
          file.check_room(half, half);
        }).find("are free (while a file is replaced, its old and new contents both take space)") !=
        std::string::npos);  // two of them fit, and no third
  CHECK(folder.count() == 0);
}

TEST_CASE("a toy that answers nothing any more says so, and has its hash printed all the same") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model";
  const Result result = run(tiny_toy +
                            "--steps 300 --rate 100 --warmup 1 --clip 0 --cooldown 0 --schedule constant --eps 1e-30 "
                            "--beta2 0 --norm-first --hash --save '" +
                            file + "'");
  CHECK(result.exit_code == 1);
  CHECK(line(result.text, 0).starts_with("hash "));
  CHECK(line(result.text, 1).starts_with("it cannot answer: "));
  const Result loaded = shell("echo a b c d e f g h | " + quoted_program + "toy --load '" + file + "' 2>&1");
  CHECK(loaded.exit_code == 1);
  CHECK(contains(loaded.text, "is NaN"));
}

TEST_CASE("an lm that cannot write any more has its loss and its hash printed all the same") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abc \n", 200));
  const Result result =
      run("lm train '" + text + "' " + tiny +
          "--threads 1 --steps 400 --warmup 30 --rate 100 --weight-decay 1 --clip 0 --evaluate-every 1000 "
          "--estimate-batches 2 --average 0 --hash");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "it cannot write: "));
  CHECK(line(result.text, -2).starts_with("hash "));
  CHECK(line(result.text, -1).starts_with("validation loss "));
}
