// Chapter 9. Tests of `orrery lm export`, and of models of other programs in `orrery lm` and `orrery inspect`.
#include "apps/tasks/lm/training.h"

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

TEST_CASE("a published GPT-2 writes, is fine-tuned with its own tokens and separators, and goes back as it came") {
  const TemporaryFolder folder;
  const std::string gpt2 = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2", tuned = folder / "tuned",
                    load = " --load '" + gpt2 + "' ", out = folder / "out";
  std::string animals;
  for (int i = 0; i < 60; ++i) animals += "the dog sees the cat .\n--\nthe cat doesn't see 3 birds .\n";
  const std::string text = written(folder / "text", animals);
  const Result sample = run("lm sample --prompt 'the dog' --tokens 40" + load);
  CHECK(sample.exit_code == 0);
  CHECK(sample.text.starts_with("the dog"));
  const auto loss_of = [&](const std::string& model, const std::string& more = "") {
    double loss = 0;
    const std::string said = run("lm eval --whole '" + text + "' --load '" + model + "'" + more).text;
    CHECK(std::sscanf(said.c_str(), "loss %lf nats", &loss) == 1);
    return loss;
  };
  const std::string train = "lm train '" + text + "' --init '" + gpt2 + "' --separator -- --batch 2 ";
  const Result trained = run(
      train + "--steps 30 --rate 0.003 --block 8 --evaluate-every 0 --threads 1 --hash --save '" + tuned + "'", "2>&1");
  CAPTURE(trained.text);
  REQUIRE(trained.exit_code == 0);
  CHECK(contains(trained.text, "pieces of 300 kinds with 54 separators"));
  CHECK_FALSE(contains(trained.text, "not in it"));
  CHECK_FALSE(contains(trained.text, "left over"));
  CHECK(loss_of(tuned) < loss_of(gpt2) - 1);
  CHECK(loss_of(gpt2, " --separator --") != loss_of(gpt2));  // a token between documents, as in the training
  CHECK(loss_of(tuned) < loss_of(gpt2, " --separator --"));
  check_failure(quoted_program + "lm eval --load '" + tuned + "' --separator --", "says what its separator is");
  const nn::GptConfig config = nn::load_gpt(tuned).config;
  CHECK(config == nn::load_gpt(gpt2).config);  // all 32 positions, too
  for (const std::string& model : {gpt2, tuned}) CHECK(nn::gpt_config(model) == config);
  const std::string asked = run("lm train --print-config --config '" + tuned + "'").text;
  CHECK(contains(asked, "\"block\": 8"));
  CHECK(line(run("lm train --threads 1 --hash --config '" + tuned + "'").text, -2) ==
        line(run(train + "--steps 30 --rate 0.003 --block 8 --evaluate-every 0 --threads 1 --hash").text, -2));
  const std::string likeliest = run("lm sample --load '" + tuned + "' --prompt 'the' --beam 3 --tokens 8").text;
  const std::string three = run("lm sample --load '" + tuned + "' --prompt 'the' --beam 3 --n-best 3 --tokens 8").text;
  CHECK(likeliest.starts_with("the"));
  CHECK(contains(line(three, 0), "\t\"the"));
  CHECK(std::stod(line(three, 0)) > std::stod(line(three, 2)));
  CHECK(std::count(three.begin(), three.end(), '\n') == 3);
  check_usage_error("lm sample --load '" + tuned + "' --n-best 2", "--n-best", "--beam");
  CHECK(run("lm sample --load '" + tuned + "' --prompt 'the' --beam 2").text.starts_with("the"));  // as much as fits
  const std::string prompt = "the dog sees the cat .";  // of which a model that writes 30 tokens sees the last three
  const Result unlike =
      run("lm sample --load '" + tuned + "' --beam 2 --tokens 30 --no-repeat-ngram 1 --prompt '" + prompt + "'");
  REQUIRE(unlike.text.starts_with(prompt));
  CHECK_FALSE(contains(unlike.text.substr(prompt.size()), " dog"));
  REQUIRE(run("lm export --load '" + tuned + "' --save '" + out + "'").exit_code == 0);
  for (const std::string name : {"/vocab.json", "/merges.txt"}) CHECK(contents(out + name) == contents(gpt2 + name));
  CHECK(nlohmann::json::parse(contents(out + "/config.json")).at("eos_token_id") == 0);
  CHECK(contains(contents(out + "/tokenizer_config.json"), "GPT2Tokenizer"));
  CHECK(loss_of(out) == loss_of(tuned));
  check_failure(quoted_program + "lm train '" + text + "' --init '" + gpt2 + "' --separator ==",
                "is the separator, '==");
  check_failure(quoted_program + "lm train '" + text + "' --tokens bpe", "--tokens bpe are those of a published GPT-2");
  check_failure(quoted_program + "lm train '" + text + "' --separator --", "characters have no token that is no text");
  check_usage_error(train + "--preset gpt2", "--preset", "--init");
  check_usage_error(train + "--block 64", "--block", "must be at most the model's 32");
  check_usage_error(train + "--rate 1e-5 --last-rate 1e-4", "--last-rate", "must be at most --rate");
  const auto options = nlohmann::json::parse(run(train + "--rate 3e-5 --print-config").text);
  CHECK(options.at("last-rate").get<double>() == doctest::Approx(3e-6));
}

TEST_CASE("a published GPT-2 whose merges.txt is missing or broken is refused in one line that names it") {
  const TemporaryFolder folder;
  const std::string fixture = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2/", copy = folder / "copy";
  std::filesystem::create_directory(copy);
  for (const std::string name : {"config.json", "model.safetensors", "vocab.json"})
    std::filesystem::copy_file(fixture + name, copy + "/" + name);
  const std::string text = written(folder / "text", repeated("the dog sees the cat .\n", 60));
  for (const std::string& command : {"lm sample --load '" + copy + "'", "lm train '" + text + "' --init '" + copy + "'",
                                     "lm export --load '" + copy + "' --save '" + (folder / "out") + "'"}) {
    std::filesystem::remove(copy + "/merges.txt");
    check_failure(quoted_program + command, "read " + copy + "/merges.txt: No such file or directory");
    written(copy + "/merges.txt", "#version: 0.2\nq q\n");
    check_failure(quoted_program + command, "read " + copy + "/merges.txt: line 2, 'q q', must be two tokens of");
  }
  for (const std::string name : {"/vocab.json", "/merges.txt"}) std::filesystem::remove(copy + name);
  check_failure(quoted_program + "lm train '" + text + "' --init '" + copy + "'",
                "GPT-2's are read from vocab.json and merges.txt beside it");
}
