// Chapter 9. Tests of --init: a training starts from the weights of a saved model, as far as they fit.
#include <filesystem>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using orrery::read_safetensors;
using orrery::same_bits;
using orrery::TemporaryFolder;

namespace {

// Trains with a rate of 0, so that the model stays what it was at the start.
const std::string still = "toy --steps 1 --rate 0 --seed 7 " + small_toy_options,
                  deeper =
                      "toy --steps 1 --rate 0 --seed 7 --batch 4 --d-model 8 --heads 2 --d-ff 8 --encoder-layers 2 "
                      "--decoder-layers 1 --max-length 9 ";

}  // namespace

TEST_CASE("--init starts from a model's weights, and what does not fit is said and drawn anew") {
  const TemporaryFolder folder;
  const std::string first = folder / "first", second = folder / "second", from_first = "--init '" + first + "' ";
  REQUIRE(run(quick_toy + "--save '" + first + "'").exit_code == 0);
  const Result same = errors(still + from_first + "--save '" + second + "'");
  REQUIRE(same.exit_code == 0);
  CHECK(contains(same.text, "starting from " + first + "\n"));
  CHECK_FALSE(contains(same.text, "not in it"));
  CHECK_FALSE(contains(same.text, "left over"));
  const orrery::TensorMap given = read_safetensors(first).tensors, kept = read_safetensors(second).tensors;
  CHECK(given.size() == kept.size());
  for (const auto& each : given) CHECK_MESSAGE(same_bits(kept.at(each.first), each.second), each.first);

  const Result grown = errors(deeper + from_first + "--overwrite --save '" + second + "'");
  REQUIRE(grown.exit_code == 0);
  CHECK(contains(grown.text, "  not in it: encoder.layers.1."));
  CHECK(contains(grown.text, " more\n"));
  const orrery::TensorMap larger = read_safetensors(second).tensors;
  for (const auto& each : given) CHECK_MESSAGE(same_bits(larger.at(each.first), each.second), each.first);
  const Result back = errors(still + "--init '" + second + "'");
  CHECK(back.exit_code == 0);
  CHECK(contains(back.text, "  left over: encoder.layers.1."));
}

TEST_CASE("--init decides what is trained: a saved model trains the same again, and a resumed one needs it no more") {
  const TemporaryFolder folder;
  const std::string first = folder / "first", second = folder / "second";
  REQUIRE(run(quick_toy + "--save '" + first + "'").exit_code == 0);
  const std::string train = "toy --steps 2000 --hash --threads 1 " + small_toy_options, init = "--init first ";
  const auto in_folder = [&](const std::string& arguments) {
    return shell("cd '" + folder.path().string() + "' && " + quoted_program + arguments + " 2>/dev/null");
  };
  const std::string hash = hash_in(in_folder(train + init + "--save second").text);
  CHECK(hash != trained_hash(train));
  CHECK(trained_hash("toy --hash --config '" + second + "'") == hash);
  REQUIRE(in_folder(train + init + "--overwrite --time-limit 0.0001 --save second").exit_code == 130);
  std::filesystem::remove(first);
  CHECK(trained_hash("toy --hash --threads 1 --resume '" + second + "'") == hash);
}

TEST_CASE("what --init cannot start from is refused before the training, and the model itself is not written over") {
  const TemporaryFolder folder;
  const std::string first = folder / "first", text = written(folder / "text", "no model");
  REQUIRE(run(quick_toy + "--save '" + first + "'").exit_code == 0);
  check_failure(quoted_program + still + "--init '" + (folder / "none") + "'", "No such file or directory");
  check_failure(quoted_program + still + "--init '" + text + "'", "read " + text + ": is damaged");
  check_failure(quoted_program + still + "--init '" + first + "' --overwrite --save '" + first + "'",
                "toy: --save " + first + " would write over --init " + first);
  check_usage_error("toy --resume x --init y", "--resume", "--init");
}

TEST_CASE("a text is learned with the tokens of the model that --init names") {
  const TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abcd ", 100)), model = folder / "model",
                    other = written(folder / "other", repeated("dab ", 100)),
                    foreign = written(folder / "foreign", repeated("abx ", 100));
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + model + "'").exit_code == 0);
  const std::string tune = " " + quick_lm + "--init '" + model + "' ";
  const Result tuned = errors("lm train '" + other + "'" + tune);
  CHECK(tuned.exit_code == 0);
  CHECK(contains(tuned.text, "characters of 5 kinds"));
  CHECK_FALSE(contains(tuned.text, "not in it"));
  check_failure(quoted_program + "lm train '" + foreign + "'" + tune, "'x', is not one of the model's 5");
  const Result alike = errors("lm train --init '" + model + "' --config '" + model + "'");  // which names a preset
  CHECK(alike.exit_code == 0);
  CHECK(contains(alike.text, "starting from " + model + "\n"));
}
