// Chapter 0. Tests of `orrery toy` that is stopped, and of what it does when it is resumed.
#include <filesystem>

#include "core/files/safetensors.h"
#include "tests/apps/lm_program.h"
#include "tests/apps/tasks/toy/toy_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

namespace {

// Starts a training in the background, waits for `condition`, and stops it with Ctrl-C's signal.
Result stopped_when(const std::string& condition, const std::string& arguments, const std::string& log) {
  return shell(quoted_program + arguments + " 2>'" + log + "' & until " + condition +
               "; do kill -0 $! || break; sleep 0.01; done; kill -INT $!; wait $!");
}

}  // namespace

TEST_CASE("Ctrl-C ends the training, examines and saves what there is, and exits with 130") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  const Result result =
      shell("timeout --preserve-status -s INT 3 " + quoted_program +
            "toy --steps 1000000 --batch 4 --d-model 8 --heads 2 --d-ff 8 --save '" + file + "' 2>/dev/null");
  CHECK(result.exit_code == 130);
  CHECK(line(result.text, -1).starts_with("exact match "));
  CHECK(shell("echo abc | " + quoted_program + "toy --load '" + file + "'").exit_code == 0);
}

TEST_CASE("a toy that was stopped goes on to the bits of one that was not, at another number of threads") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model", log = folder / "log", json = folder / "json";
  const std::string recipe = "toy --steps 3000 --seed 3 --dropout 0.2 --tiles 2 --hash " + small_toy_options;
  const Result whole = run(recipe + "--threads 1");
  REQUIRE(whole.exit_code == 0);
  const Result stopped = stopped_when("grep -q ^step '" + log + "'",
                                      recipe + "--threads 1 --save '" + file + "' --log '" + json + "'", log);
  REQUIRE(stopped.exit_code == 130);
  CHECK(line(stopped.text, -1).starts_with("exact match "));
  CHECK(contains(orrery::contents(log), "\nsaved to " + file + "\nstopped after step "));
  CHECK(contains(orrery::contents(log), " of 3000; to resume: orrery toy --resume " + file + " --log " + json + "\n"));
  CHECK(shell("echo abc | " + quoted_program + "toy --load '" + file + "'").exit_code == 0);
  check_failure(quoted_program + recipe + "--save '" + file + "'", "continue it with --resume");
  const std::string log_of_first = orrery::contents(json);
  CHECK(contains(log_of_first, "{\"step\":1,"));
  const Result resumed = run("toy --hash --threads 2 --resume '" + file + "' --log '" + json + "'");
  CHECK(resumed.exit_code == 0);
  CHECK(line(resumed.text, -2) == line(whole.text, -2));
  CHECK(resumed.text.substr(0, resumed.text.find(" in ")) == whole.text.substr(0, whole.text.find(" in ")));
  CHECK(orrery::contents(json).starts_with(log_of_first));
  CHECK(orrery::contents(json).size() > log_of_first.size());
  check_failure(quoted_program + "toy --resume '" + file + "'", "is finished, or was never started");
  CHECK(folder.count() == 3);
}

TEST_CASE("a time limit stops the toy as Ctrl-C does") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model";
  const Result result = errors("toy --steps 1000000 --time-limit 0.002 " + small_toy_options + "--save '" + file + "'");
  CHECK(result.exit_code == 130);
  CHECK(contains(result.text, "the time limit is reached\n"));
  CHECK(contains(result.text, "to resume: orrery toy --resume "));
  CHECK(std::filesystem::exists(file + ".resume"));
}

TEST_CASE("what cannot be resumed is refused, and stays as it is") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model", lm = folder / "lm", log = folder / "log";
  const std::string text = written(folder / "text", repeated("abc \n", 200));
  const std::string until_step = "grep -q ^step '" + log + "'";
  REQUIRE(stopped_when(until_step, "toy --steps 5000 " + small_toy_options + "--save '" + file + "'", log).exit_code ==
          130);
  std::filesystem::remove(log);
  REQUIRE(stopped_when(until_step, "lm train '" + text + "' " + tiny + "--steps 20000 --save '" + lm + "'", log)
              .exit_code == 130);
  const std::string kept = orrery::contents(file + ".resume"), resume = "toy --resume '" + file + "' ";
  check_failure(quoted_program + "toy --resume '" + lm + "'", lm + ".resume is a training of orrery lm");
  check_failure(quoted_program + "lm train --resume '" + file + "'", file + ".resume is a training of orrery toy");
  check_failure(quoted_program + "toy --resume '" + (folder / "none") + "'", "there is no " + (folder / "none"));
  check_failure(quoted_program + "toy --resume /nowhere/model", "No such file or directory");
  check_failure(quoted_program + "toy --load '" + file + ".resume' </dev/null", "is an unfinished training");
  check_failure(quoted_program + "lm sample --load '" + lm + ".resume'", "is an unfinished training");
  check_usage_error(resume + "--tiles 4", "--resume", "--tiles");
  check_usage_error(resume + "--steps 6000", "--resume", "--steps");
  check_usage_error(resume + "--save x", "--resume", "--save");
  check_usage_error(resume + "--losses x", "--resume", "--losses");
  check_failure(quoted_program + resume + "--log '" + file + ".lock'", "would write over the files of --save " + file);
  check_failure(quoted_program + resume + "--attention '" + file + ".resume'", "is a file that holds a model");
  CHECK(orrery::contents(file + ".resume") == kept);
  orrery::TensorFile huge = orrery::read_safetensors(file + ".resume");
  std::string& options = huge.metadata.at("options");
  for (const std::string size : {"\"d-ff\": 8", "\"d-model\": 8"}) {
    REQUIRE(contains(options, size));
    options.replace(options.find(size), size.size(), size.substr(0, size.size() - 1) + "4096");
  }
  orrery::write_safetensors(file + ".resume", huge.tensors, huge.metadata);
  check_failure(quoted_program + resume, "is too small for the model it describes");
  orrery::set_contents(file + ".resume", kept.substr(0, kept.size() / 2));
  check_failure(quoted_program + resume, file + ".resume");
  CHECK_FALSE(std::filesystem::exists(file + ".lock"));
}

TEST_CASE("a training that is resumed keeps the options it began with") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model";
  const std::string train = "toy --steps 600 --seed 3 --threads 1 " + small_toy_options;
  const std::string printed = run(train + "--print-config").text, whole = line(run(train + "--hash").text, -2);
  REQUIRE(errors(train + "--time-limit 0.0005 --save '" + file + "'").exit_code == 130);
  CHECK(orrery::read_safetensors_metadata(file + ".resume").at("options") + "\n" == printed);
  CHECK(line(run("toy --hash --threads 1 --resume '" + file + "'").text, -2) == whole);
  CHECK(orrery::read_safetensors_metadata(file).at("options") + "\n" == printed);
  CHECK(line(run("toy --hash --threads 1 --config '" + file + "'").text, -2) == whole);
}
