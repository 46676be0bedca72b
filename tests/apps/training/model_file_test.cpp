// Chapter 9. Tests of the file of a training: nobody's work is lost in it, by neither program that trains.
#include "apps/training/model_file.h"

#include <filesystem>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/lm_program.h"
#include "tests/apps/tasks/toy/toy_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using orrery::small::error_of;

namespace {

const std::string tiny_toy = "toy --threads 1 " + small_toy_options;

// Waits in a shell until `condition` holds, or the program in the background has ended.
std::string until(const std::string& condition) {
  return " & until " + condition + " 2>/dev/null; do kill -0 $! || break; sleep 0.01; done; ";
}

// What either program needs to train, for this many steps, into FILE.
struct Program {
  std::string name, arguments, last_line;
  std::string command(int steps, const std::string& file) const {
    return quoted_program + arguments + "--steps " + std::to_string(steps) + " --save '" + file + "' ";
  }
};
std::vector<Program> programs(const orrery::TemporaryFolder& folder) {
  const std::string text = written(folder / "text", repeated("abc \n", 200));
  return {{"toy", tiny_toy, "exact match "},
          {"lm", "lm train '" + text + "' " + tiny + "--threads 1 --evaluate-every 1000 ", "validation loss "}};
}

}  // namespace

TEST_CASE("keep remembers what went wrong until it goes well") {
  orrery::ModelFile file("test", "model"), none("test", "");
  CHECK(file.keep([] {}));
  CHECK_FALSE(file.keep([] { orrery::fail("write model", "No space left on device"); }));
  CHECK(file.problem() == "write model: No space left on device");
  CHECK(error_of([&] { file.check_kept(); }) == "test: the model is not saved: write model: No space left on device");
  CHECK(file.keep([] {}));
  CHECK(error_of([&] { file.check_kept(); }) == "");
  CHECK(none.keep([] { orrery::fail("write", "is never called"); }));
}

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

TEST_CASE("a model that stands there is not made worse unasked") {
  const orrery::TemporaryFolder folder;
  for (const Program& program : programs(folder)) {
    CAPTURE(program.name);
    const std::string file = folder / program.name;
    REQUIRE(shell(program.command(3, file) + "2>/dev/null").exit_code == 0);
    const std::string first = orrery::contents(file);
    check_failure(program.command(2, file), " already holds a model: --overwrite replaces it");
    CHECK(orrery::contents(file) == first);
    CHECK(shell(program.command(2, file) + "--overwrite 2>/dev/null").exit_code == 0);
    CHECK(orrery::contents(file) != first);
    CHECK_FALSE(std::filesystem::exists(file + ".lock"));
  }
}

TEST_CASE("a second training into a file is refused, and told whose it is; a killed one does not stand in the way") {
  const orrery::TemporaryFolder folder;
  for (const Program& program : programs(folder)) {
    CAPTURE(program.name);
    const std::string file = folder / program.name;
    const Result second =
        shell(program.command(1000000, file) + ">/dev/null 2>&1" + until("[ -s '" + file + ".lock' ]") + "echo $!; " +
              program.command(3, file) + "2>&1; code=$?; kill -9 $!; wait $! 2>/dev/null; exit $code");
    CHECK(second.exit_code == 1);
    CHECK(
        line(second.text, 1).starts_with("orrery: " + program.name + ": another training saves its model in " + file));
    CHECK(contains(line(second.text, 1), ": process " + line(second.text, 0) + ", "));
    CHECK(contains(line(second.text, 1), program.arguments.substr(0, 5)));
    CHECK(std::filesystem::exists(file + ".lock"));
    std::filesystem::remove(file + ".resume");
    CHECK(shell(program.command(3, file) + "--overwrite 2>/dev/null").exit_code == 0);
    CHECK_FALSE(std::filesystem::exists(file + ".lock"));
  }
}

TEST_CASE("where nothing can be saved at the end, what was trained is judged all the same") {
  const orrery::TemporaryFolder folder;
  for (const Program& program : programs(folder)) {
    CAPTURE(program.name);
    const std::string inner = folder / "inner", log = folder / "log";
    std::filesystem::create_directory(inner);
    const Result result =
        shell(program.command(3000, inner + "/model") + "2>'" + log + "'" + until("grep -q ^step '" + log + "'") +
              "until rm -r '" + inner + "'; do kill -0 $! || break; done; wait $!");
    CHECK(result.exit_code == 1);
    CHECK(line(result.text, -1).starts_with(program.last_line));
    CHECK(line(orrery::contents(log), -1)
              .starts_with("orrery: " + program.name + ": the model is not saved: write " + inner + "/model: "));
    std::filesystem::remove(log);
  }
}

TEST_CASE("a training that is stopped before its first step ends at once, and leaves the model that stands there") {
  const orrery::TemporaryFolder folder;
  const std::string text = folder / "text", log = folder / "log";
  const std::string slow_lm = "lm train '" + text + "' --d-model 512 --d-ff 2048 --layers 8 --estimate-batches 1 ";
  for (const Program& program : programs(folder)) {
    CAPTURE(program.name);
    const std::string file = folder / program.name;
    REQUIRE(shell(program.command(3, file) + "2>/dev/null").exit_code == 0);
    const std::string kept = orrery::contents(file);
    const Program slow{program.name, program.name == "toy" ? "toy --preset annotated --batch 40 " : slow_lm, ""};
    const Result result = shell(slow.command(1000, file) + "--threads 1 --overwrite 2>'" + log + "'" +
                                until("[ -s '" + file + ".lock' ]") + "sleep 0.5; kill -TERM $!; wait $!");
    CHECK(result.exit_code == 130);
    CHECK(result.text == "");
    CHECK(line(orrery::contents(log), -1).starts_with("stopped after step 0 of 1000"));
    CHECK(orrery::contents(file) == kept);
    CHECK_FALSE(std::filesystem::exists(file + ".resume"));
  }
}

TEST_CASE("a step that is not finite ends the training, and the model before it is kept") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model";
  const Result toy = errors(tiny_toy +
                            "--steps 2000 --rate 100 --warmup 1 --clip 0 --cooldown 0 --eps 1e-30 "
                            "--beta2 0 --norm-first --save '" +
                            file + "'");
  CHECK(toy.exit_code == 1);
  CHECK(contains(toy.text, "\nsaved to " + file + "\nstopped after step "));
  CHECK(contains(toy.text, "\norrery: toy: step "));
  CHECK_FALSE(contains(toy.text, "to resume:"));
  CHECK(contains(toy.text, "a smaller --rate or a longer --warmup may help\n"));
  CHECK(orrery::read_safetensors_metadata(file).contains("toy_task"));
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

TEST_CASE("an lm whose numbers run away ends with its best model, and says which step could not be made") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model", text = written(folder / "text", repeated("abc \n", 200));
  const std::string options =
      tiny +
      "--threads 1 --steps 400 --warmup 30 --rate 100 --weight-decay 1 --clip 0 --evaluate-every 1 "
      "--estimate-batches 2 --average 0 --save '" +
      file + "'";
  const Result log = errors("lm train '" + text + "' " + options);
  CHECK(log.exit_code == 1);
  CHECK(contains(log.text, "\norrery: lm: step "));
  CHECK(contains(log.text, "because a number is not finite; a smaller --rate or a longer --warmup may help\n"));
  CHECK(contains(log.text, "\nsaved to " + file + "\nstopped after step "));
  CHECK_FALSE(contains(log.text, "to resume:"));
  const Result result = run("lm train '" + text + "' " + options + " --overwrite");
  CHECK(result.exit_code == 1);
  CHECK(line(result.text, -1).starts_with("validation loss "));
  CHECK(run("lm eval --load '" + file + "' '" + text + "'").text.starts_with("validation loss "));
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

TEST_CASE("a path in a command that is printed is quoted") {
  const orrery::TemporaryFolder folder;
  const Program lm = programs(folder)[1];
  const std::string file = folder / "my model";
  const std::string log = folder / "log";
  const Result stopped = shell(lm.command(1000000, file) + ">/dev/null 2>'" + log + "'" +
                               until("grep -q '^step' '" + log + "'") + "kill -TERM $!; wait $!");
  CHECK(stopped.exit_code == 130);
  CHECK(line(orrery::contents(log), -1).ends_with("; to resume: orrery lm train --resume '" + file + "'"));
  check_failure(lm.command(3, file), "continue it with --resume '" + file + "', or start again with --overwrite");
}
