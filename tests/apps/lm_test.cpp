// Chapter 9. Tests of `orrery lm` as its users type it.
#include <fstream>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

namespace {

const std::string lm_program = "'" ORRERY_PROGRAM "' ";
// Learns next to nothing, in a moment.
const std::string tiny = "--batch 2 --block 8 --layers 1 --heads 2 --d-model 8 --d-ff 8 ";
const std::string quick_lm = tiny + "--steps 4 --warmup 1 --estimate-every 2 --estimate-batches 2 ";

std::string written(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string many(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("lm train reports its losses, and the model writes text of its alphabet") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", many("ab\u00e4 ", 100)), file = folder / "model.safetensors";
  const Result trained = run("lm train '" + text + "' " + quick_lm + "--hash --save '" + file + "'");
  CHECK(trained.exit_code == 0);
  CHECK(line(trained.text, 0).starts_with("hash "));
  double loss = 0, estimate = 0, seconds = 0;
  CHECK(std::sscanf(line(trained.text, 1).c_str(), "validation loss %lf (estimate %lf) in %lf s", &loss, &estimate,
                    &seconds) == 3);
  CHECK(loss > 0.5);
  CHECK(loss < 2);

  const std::string sample = "lm sample --load '" + file + "' --prompt ab --tokens 20 ";
  const Result first = run(sample + "--seed 3");
  CHECK(first.exit_code == 0);
  CHECK(first.text.starts_with("ab"));
  CHECK(first.text.ends_with("\n"));
  CHECK(first.text.find_first_not_of("ab\u00e4 \n") == std::string::npos);
  CHECK(run(sample + "--seed 3").text == first.text);
  CHECK(run(sample + "--seed 3 --threads 1").text == first.text);
  CHECK(run(sample + "--seed 4 --temperature 5").text != first.text);
  CHECK(run(sample + "--temperature 0 --seed 1").text == run(sample + "--top-k 1 --seed 2").text);
  CHECK(run(sample + "--top-p 0.0001").text == run(sample + "--temperature 0").text);
  CHECK(run("lm sample --load '" + file + "' --prompt ab --tokens 0").text == "ab\n");
  check_failure(lm_program + "lm sample --load '" + file + "' --prompt 'ab!'",
                "character 3, '!', is not one of the model's 4");
  CHECK(run("lm sample --load '" + file + "' --tokens 30").text.find_first_not_of("ab\u00e4 \n") == std::string::npos);
}

TEST_CASE("estimates and progress go to stderr, with loss, rate, speed and no accuracy") {
  const orrery::TemporaryFolder folder;
  const Result result = errors("lm train '" + written(folder / "text", many("abc ", 100)) + "' " + quick_lm);
  CHECK(contains(result.text, ": 360 + 40 characters of 4 kinds\n"));
  CHECK(contains(result.text, "step 2: validation estimate 1."));
  CHECK(contains(result.text, "step 4: validation estimate 1."));
  CHECK(contains(result.text, "step 4/4  loss 1."));
  CHECK(contains(result.text, "  rate 1.0e-0"));
  CHECK(contains(result.text, " tokens/s  took "));
  CHECK_FALSE(contains(result.text, "accuracy"));
}

TEST_CASE("the hash is the same for 1, 2 and 4 threads, and another for another seed") {
  const std::string command = "lm train " + quick_lm + "--hash ";  // the text that comes with the program
  const std::string hash = line(run(command + "--threads 1").text, 0);
  CHECK(hash.starts_with("hash "));
  CHECK(line(run(command + "--threads 2").text, 0) == hash);
  CHECK(line(run(command + "--threads 4").text, 0) == hash);
  CHECK(line(run(command + "--seed 2").text, 0) != hash);
}

TEST_CASE("a text that is missing, empty, too short or none says so in one line") {
  const orrery::TemporaryFolder folder;
  const auto train = [](const std::string& path) { return lm_program + "lm train '" + path + "'"; };
  check_failure(train(folder / "nowhere"), "No such file or directory");
  check_failure(train("/tmp"), "/tmp is a folder");
  check_failure(train(written(folder / "empty", "")), "is empty");
  check_failure(train(written(folder / "short", many("abc ", 100))), "of 400 characters is too short");
  check_failure(train(written(folder / "binary", many("\xff\xfe", 1000))), "is not UTF-8");
}

TEST_CASE("wrong values are refused before the training begins") {
  check_usage_error("lm", "lm", "train, sample");
  check_usage_error("lm think", "'think'", "train, sample");
  check_usage_error("lm train --steps 0", "--steps", "from 1 to");
  check_usage_error("lm train --dropout 2", "--dropout", "from 0 to");
  check_usage_error("lm train --heads 3", "--heads", "--d-model, 128");
  check_usage_error("lm train --steps 100", "--warmup", "--steps, 100");
  check_usage_error("lm train --save ''", "--save", "must not be empty");
  check_usage_error("lm sample", "--load", "required");
  check_usage_error("lm sample --load x --top-p 0", "--top-p", "from 1e-09 to 1");
  check_usage_error("lm sample --load x --temperature -1", "--temperature", "from 0 to");
  check_failure(lm_program + "lm train --save /nowhere/model.safetensors", "No such file or directory");
  check_failure(lm_program + "lm sample --load /nowhere/model", "/nowhere/model");
  CHECK(contains(run("lm train --help").text, "orrery lm train --save"));
  CHECK(contains(run("lm train --help").text, "--rate NUMBER=0.001"));
  CHECK(contains(run("lm sample --help").text, "--prompt ROMEO:"));
}

TEST_CASE("a file that holds another model is refused") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "toy.safetensors";
  REQUIRE(run("toy --steps 1 --batch 2 --d-model 8 --heads 2 --d-ff 8 --save '" + file + "'").exit_code == 0);
  check_failure(lm_program + "lm sample --load '" + file + "'", "was not saved by orrery lm");
}

TEST_CASE("Ctrl-C ends the training, judges and saves what there is, and exits with 130; writing ends too") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  const std::string text = written(folder / "text", many("abc \n", 200));
  const Result result = shell("timeout --preserve-status -s INT 3 " + lm_program + "lm train '" + text + "' " + tiny +
                              "--steps 100000000 --save '" + file + "' 2>/dev/null");
  CHECK(result.exit_code == 130);
  CHECK(line(result.text, -1).starts_with("validation loss "));
  const Result writing = shell("timeout --preserve-status -s INT 1 " + lm_program + "lm sample --load '" + file +
                               "' --tokens 1000000000 2>/dev/null");
  CHECK(writing.exit_code == 130);
  CHECK(writing.text.size() > 100);
  CHECK(shell(lm_program + "lm sample --load '" + file + "' --tokens 1000000000 | head -c 50 | wc -c").text == "50\n");
}

TEST_CASE("seeds: nanoGPT's recipe reaches nanoGPT's loss") {
  double losses = 0, estimates = 0;
  for (int seed = 1; seed <= 5; ++seed) {
    const Result result = run("lm train --seed " + std::to_string(seed));
    MESSAGE("seed " << seed << ": " << line(result.text, -1));
    double loss = 0, estimate = 0;
    REQUIRE(std::sscanf(line(result.text, -1).c_str(), "validation loss %lf (estimate %lf)", &loss, &estimate) == 2);
    losses += loss / 5, estimates += estimate / 5;
  }
  CHECK(losses <= 1.905);
  CHECK(estimates <= 1.90);
}
