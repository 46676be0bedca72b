// Chapter 9. Tests of `orrery lm export`, and of models of other programs in `orrery lm` and `orrery inspect`.
#include "apps/tasks/lm/saved.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "nn/files/gpt_files.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

namespace {

std::string exported_text() { return repeated("ab\u00e4 cab\n", 100); }

// A model of 5 or so characters, and what other programs make of it: no metadata, Linear's layout, shards.
std::string as_nanogpt(const std::string& path, const TemporaryFolder& folder) {
  TensorMap tensors;
  for (const auto& [name, tensor] : read_safetensors(path).tensors)
    tensors["_orig_mod.transformer." + name] =
        name.starts_with("h.") && tensor.rank() == 2 ? permute(tensor, {1, 0}) : tensor;
  tensors["_orig_mod.lm_head.weight"] = tensors.at("_orig_mod.transformer.wte.weight");
  write_safetensors(folder / "1.safetensors", {{"_orig_mod.lm_head.weight", tensors.at("_orig_mod.lm_head.weight")}});
  tensors.erase("_orig_mod.lm_head.weight");
  write_safetensors(folder / "2.safetensors", tensors);
  std::string map = R"("_orig_mod.lm_head.weight": "1.safetensors")";
  for (const auto& entry : tensors) map += ", \"" + entry.first + R"(": "2.safetensors")";
  return written(folder / "model.safetensors.index.json", R"({"weight_map": {)" + map + "}}");
}

}  // namespace

TEST_CASE("an exported model samples and is evaluated as the original, and its files say what it is") {
  const TemporaryFolder folder;
  const std::string text = written(folder / "text", exported_text()), file = folder / "model";
  for (const std::string tokens : {"chars", "bytes", "sentencepiece --vocab-size 300"}) {
    CAPTURE(tokens);
    REQUIRE(run("lm train '" + text + "' " + quick_lm + "--overwrite --tokens " + tokens + " --save '" + file + "'")
                .exit_code == 0);
    const std::string out = folder / tokens.substr(0, 5);
    const Result exported = run("lm export --load '" + file + "' --save '" + out + "'");
    CHECK(exported.exit_code == 0);
    CHECK(contains(exported.text, out + " has a GPT2LMHeadModel, and a tokenizer whose tokens are "));
    for (const std::string& use : {std::string("sample --prompt ab --tokens 30"), "eval '" + text + "'"}) {
      const Result ours = run("lm " + use + " --load '" + file + "'");
      CHECK(ours.exit_code == 0);
      CHECK(run("lm " + use + " --load '" + out + "'").text == ours.text);
    }
    const auto config = nlohmann::json::parse(contents(out + "/config.json"));
    CHECK(config.at("architectures") == nlohmann::json{"GPT2LMHeadModel"});
    CHECK(config.at("n_head") == 2);
    CHECK(config.at("activation_function") == "gelu");
    CHECK(config.at("vocab_size") == read_safetensors(out).tensors.at("transformer.wte.weight").shape()[0]);
    CHECK(nlohmann::json::parse(contents(out + "/tokenizer_config.json")).at("model_max_length") == 8);
    const auto model = nlohmann::json::parse(contents(out + "/tokenizer.json")).at("model");
    CHECK(model.at("vocab").size() == config.at("vocab_size"));
    if (tokens == "chars") CHECK(model.at("vocab").at("\u00e4") == 5);
    if (tokens == "bytes") CHECK(model.at("vocab").at("\u0120") == ' ');  // as GPT-2 writes a space
    if (tokens == "bytes") CHECK(model.at("vocab").at("\u00ff") == 255);
    if (tokens.starts_with("s")) CHECK(model.at("vocab").at(7 + '\n').at(0) == "<0x0A>");
    check_failure(quoted_program + "lm export --load '" + file + "' --save '" + out + "'",
                  out + "/model.safetensors exists; name another folder");
  }
}

TEST_CASE("what GPT-2 does not have is not exported, and no file is written") {
  const TemporaryFolder folder;
  const std::string text = written(folder / "text", exported_text()), file = folder / "model", out = folder / "out";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--rotary --save '" + file + "'").exit_code == 0);
  check_failure(quoted_program + "lm export --load '" + file + "' --save '" + out + "'",
                "GPT-2 has no rotary positions, so Hugging Face's GPT2LMHeadModel would compute something else");
  CHECK_FALSE(std::filesystem::exists(out));
  check_usage_error("lm export --load '" + file + "'", "--save", "required");
}

TEST_CASE("a model of nanoGPT's in shards is sampled, evaluated, exported and inspected") {
  const TemporaryFolder folder, theirs;
  const std::string text = written(folder / "text", exported_text()), file = folder / "model";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + file + "'").exit_code == 0);
  const std::string index = as_nanogpt(file, theirs), shards = theirs.path().string();
  const std::string says = " --heads 2 --characters '" + text + "'";
  for (const std::string& use : {std::string("sample --prompt ab --tokens 30"), "eval --whole '" + text + "'"}) {
    const std::string ours = run("lm " + use + " --load '" + file + "'").text;
    CHECK(ours != "");
    for (const std::string& path : {index, shards})
      CHECK(run("lm " + use + " --load '" + path + "'" + says).text == ours);
  }
  const std::string sample = quoted_program + "lm sample --load '" + shards + "'";
  check_failure(sample + " --heads 2", "does not say what its tokens are). If they are characters");
  check_failure(sample + " --characters '" + text + "'", "does not say how many heads its attention has");
  check_failure(sample + " --heads 3 --characters '" + text + "'", "d_model (8)");
  check_failure(quoted_program + "lm sample --load '" + file + "'" + says, "says what its tokens are");
  const std::string out = folder / "out";
  const Result exported = run("lm export --heads 2 --load '" + index + "' --save '" + out + "'");
  CHECK(contains(exported.text, "without a tokenizer: " + index + " does not say what its tokens are"));
  CHECK(nn::load_gpt(out).config.layer.num_heads == 2);
  const std::string shown = run("inspect '" + shards + "'").text;
  CHECK(shown.starts_with(index + ": 2 safetensors files of "));
  CHECK(contains(shown, "GPT-2's names: vocab_size 6, max_len 8, d_model 8, d_ff 8, num_layers 1, num_heads is"));
  const i64 numbers = 6 * 8 + 8 * 8 + (3 * 8 * 8 + 8 * 8 + 2 * 8 * 8 + 2 * 8) + 8;  // the head is the table
  CHECK(contains(shown, "a model of " + std::to_string(numbers) + " parameters"));
  std::filesystem::remove(theirs / "1.safetensors");
  check_failure(quoted_program + "inspect '" + shards + "'", "needs '1.safetensors' beside it, which is missing");
  CHECK(run("leakcheck --heads 2 --load '" + out + "'").exit_code == 0);
  CHECK(contains(errors("leakcheck --heads 4 --load '" + out + "'").text, "has 2 heads, not 4"));
}
