// Chapter 9. Tests of the built program's `orrery inspect`: files of ours and of others, whole and broken.
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

namespace {

const std::string inspect_program = quoted_program + "inspect ";

}  // namespace

TEST_CASE("a model of `orrery lm` is shown with its tensors, configuration and alphabet") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abc ", 100)), model = folder / "model",
                    json = folder / "report.json";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + model + "'").exit_code == 0);
  const Result result = run("inspect '" + model + "' --json '" + json + "'");
  CHECK(result.exit_code == 0);
  CHECK(contains(line(result.text, 0), model + ": a safetensors file of "));
  CHECK(contains(result.text, "\nall checksums are right\n"));
  CHECK(contains(result.text, "vocab_size 4, d_model 8, "));
  CHECK(contains(result.text, "\n  alphabet: ' abc'\n"));
  CHECK(contains(result.text, "\nwte.weight "));
  CHECK_FALSE(contains(result.text, "state of the training"));
  const auto report = nlohmann::json::parse(orrery::contents(json));
  CHECK(report.at("parameters") == 4 * 8 + 8 * 8 + 8 * 24 + 8 * 8 + 2 * 8 * 8 + 3 * 8);  // tied, without biases
  CHECK(report.at("damaged") == 0);
  CHECK(report.at("training").is_null());
  CHECK(report.at("tensors").size() == 9);
}

TEST_CASE("an unfinished training is shown with its steps, best loss, seed, kernel, tiles and text") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abc ", 100)), model = folder / "model";
  const std::string until_kept =
      " 2>/dev/null & while [ ! -e '" + model + ".resume' ] && kill -0 $!; do sleep 0.01; done; kill -9 $!; wait $!";
  shell(quoted_program + "lm train '" + text + "' " + tiny +
        "--seed 5 --steps 100000000 --evaluate-every 100 --estimate-batches 1 --save '" + model + "'" + until_kept);
  REQUIRE(std::filesystem::exists(model + ".resume"));
  const Result result = run("inspect '" + model + ".resume'");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "\nstate of the training\n  steps done "));
  CHECK(contains(result.text, " of 100000000\n"));
  for (const std::string part :
       {"  best loss ", "  seed                   5\n", "  kernel ", "  tiles                  2\n"})
    CHECK(contains(result.text, part));
  CHECK(contains(result.text, "  origin: texts "));
  CHECK(contains(result.text, "\nparameter.wte.weight "));
}

TEST_CASE("damage is shown tensor by tensor, and is a failure") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "a";
  orrery::write_safetensors(path, {{"good", orrery::zeros({3})}, {"hurt", orrery::zeros({2})}});
  orrery::flip_bit(path, 8 * orrery::contents(path).size() - 1);
  const Result result = run("inspect '" + path + "'");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "1 of 2 checksums are wrong: the file is damaged\n"));
  CHECK(line(result.text, -2).starts_with("good "));
  CHECK_FALSE(contains(line(result.text, -2), "DAMAGED"));
  CHECK(line(result.text, -1).starts_with("hurt "));
  CHECK(contains(line(result.text, -1), "  DAMAGED"));
  CHECK(errors("inspect '" + path + "'").text ==
        "orrery: inspect: " + path + ": 1 of 2 tensors is damaged; the first is 'hurt'\n");
}

TEST_CASE("any other file is refused in one line that says so") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "a", quoted = "'" + path + "'";
  check_failure(inspect_program + quoted, "read " + path + ": No such file or directory");
  check_failure(inspect_program + "'" + folder.path().string() + "'",
                folder.path().string() + "/model.safetensors: No such file or directory");
  check_failure(inspect_program + "/dev/null", "read /dev/null: is not a regular file");
  written(path, "");
  check_failure(inspect_program + quoted, "is not a safetensors file: it has only 0 bytes");
  written(path, "PK\x03\x04" + repeated("x", 100));
  check_failure(inspect_program + quoted, "is not a safetensors file: it is a ZIP archive, such as torch.save writes");
  orrery::write_safetensors(path, {{"w", orrery::zeros({100})}});
  const std::string whole = orrery::contents(path);
  for (const size_t length : {size_t{20}, whole.size() - 1}) {
    written(path, whole.substr(0, length));
    check_failure(inspect_program + quoted, "read " + path + ": ");
  }
  check_usage_error("inspect", "FILE", "required");
  check_usage_error("inspect a b", "'b'", "orrery inspect --help");
}

TEST_CASE("the file of --json never replaces a model") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "a";
  orrery::write_safetensors(path, {{"w", orrery::zeros({1})}});
  const std::string before = orrery::contents(path);
  check_failure(inspect_program + "'" + path + "' --json '" + path + "'", "holds a model");
  CHECK(orrery::contents(path) == before);
}
