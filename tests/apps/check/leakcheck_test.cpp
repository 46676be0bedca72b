// Chapter 9. Tests of `orrery leakcheck`: its picture, its last line and its exit code.
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/bert.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

namespace {

// Runs `orrery leakcheck ARGUMENTS`; `text` is stdout and stderr.
Result leakcheck(const std::string& arguments) { return run("leakcheck --threads 1 " + arguments, "2>&1"); }

}  // namespace

TEST_CASE("leakcheck shows every model's matrices and ends with 0 leaks") {
  const Result result = leakcheck("");
  CHECK(result.exit_code == 0);
  CHECK(result.text.ends_with("\n20 checked, 0 leaks\n"));
  CHECK(contains(result.text, "transformer-pre-norm: which target (across) moves which logits (down)\n"));
  CHECK(contains(result.text, "gpt: which ids (across) moves which logits (down)\n"));
  CHECK(contains(result.text, "\n        2 # # # . . .   . . . . . .   . . . . . .\n"));  // the decoder's triangle
  CHECK_FALSE(contains(result.text, " X "));
}

TEST_CASE("leakcheck names the pair of positions that leaks, and fails") {
  const Result causal = leakcheck("decoder --break causal");
  CHECK(causal.exit_code == 1);
  CHECK(causal.text.ends_with("\n2 checked, 1 leak\n"));
  CHECK(contains(causal.text, "LEAK: x position 1 of row 0 -> y position 0 of row 0, and "));
  CHECK(contains(causal.text, "\nrow 0   0 # X X . . .   ."));
  const Result padding = leakcheck("encoder --break padding");
  CHECK(padding.exit_code == 1);
  CHECK(contains(padding.text, "LEAK: x position 4 of row 1 -> y position 0 of row 1, and "));
  CHECK(leakcheck("'transformer*' --break batch").text.ends_with("\n9 checked, 9 leaks\n"));
}

TEST_CASE("leakcheck rebuilds a saved model from its file") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  orrery::Rng rng(5);
  orrery::nn::Transformer model({.src_vocab_size = 6,
                                 .tgt_vocab_size = 5,
                                 .layer = {.d_model = 8, .num_heads = 2, .d_ff = 8},
                                 .num_encoder_layers = 1,
                                 .num_decoder_layers = 1,
                                 .max_len = 5},
                                rng);
  orrery::nn::save(model, path, {{std::string(orrery::nn::config_key), orrery::nn::to_json(model.config)}});
  const Result tight = leakcheck("--load " + path);
  CHECK(tight.exit_code == 0);
  CHECK(tight.text.ends_with("\n3 checked, 0 leaks\n"));
  CHECK(leakcheck("--break padding --load " + path).exit_code == 1);
  CHECK(run("leakcheck --load " + folder.path().string()).text == run("leakcheck --load " + path).text);
  const Result no_gpt = leakcheck("--heads 4 --load " + path);
  CHECK(no_gpt.exit_code == 2);
  CHECK(contains(no_gpt.text, "--heads: is for a GPT-2 of another program; " + path + " holds another model"));
  CHECK(leakcheck("--load " + path + ".gone").exit_code == 1);
  CHECK(run("leakcheck --load " + path + ".gone").text == "");  // no legend where there is no matrix
}

TEST_CASE("leakcheck rebuilds a saved GPT and a saved BERT, too") {
  const orrery::TemporaryFolder folder;
  const std::string gpt = folder / "gpt.safetensors", bert = folder / "bert.safetensors";
  orrery::Rng rng(5);
  const orrery::nn::LayerOptions layer{.d_model = 8, .num_heads = 2, .d_ff = 8};
  orrery::nn::Gpt decoder({.vocab_size = 6, .layer = layer, .num_layers = 1, .max_len = 5}, rng);
  orrery::nn::Bert encoder({.vocab_size = 6, .layer = layer, .num_layers = 1, .max_positions = 5}, rng);
  orrery::nn::save(decoder, gpt);
  orrery::nn::save(encoder, bert);
  CHECK(leakcheck("--load " + gpt).text.ends_with("\n1 checked, 0 leaks\n"));
  CHECK(leakcheck("--break causal --load " + gpt).exit_code == 1);
  CHECK(contains(leakcheck("--break padding --load " + gpt).text,
                 "check " + gpt + ": leakcheck: this model has no padding"));
  CHECK(leakcheck("--load " + bert).text.ends_with("\n3 checked, 0 leaks\n"));
  CHECK(leakcheck("--break padding --load " + bert).exit_code == 1);
}

TEST_CASE("leakcheck refuses what it does not know") {
  CHECK(leakcheck("nonsense").text ==
        "orrery: leakcheck: no model is called 'nonsense'; orrery leakcheck --list names all\n");
  CHECK(leakcheck("nonsense").exit_code == 2);
  CHECK(leakcheck("decoder --load x").exit_code == 2);
  CHECK(leakcheck("--break everything").exit_code == 2);
  CHECK(leakcheck("--load x --seed 2").exit_code == 2);  // nothing there is random
  CHECK(leakcheck("--load ''").exit_code == 2);          // an unset variable: no model was looked at
  CHECK(leakcheck("--list").text ==
        "encoder\ndecoder\ntransformer\ntransformer-pre-norm\ntransformer-that-copies\ngpt\nbert\nbert-of-"
        "sentences\ndecoder-in-tiles\n");
}

TEST_CASE("leakcheck fails where nothing can be checked") {
  check_usage_error("leakcheck gpt --break padding", "no padding in 'gpt'", "nothing would be checked");
  check_usage_error("leakcheck encoder gpt --break padding", "no padding in 'gpt'", "nothing would be checked");
  CHECK(leakcheck("'gp?' --break padding").exit_code == 2);
  check_usage_error("leakcheck encoder --break causal", "no causal mask in 'encoder'", "nothing would be checked");
}

TEST_CASE("attention by tiles is checked too, and its leaks are found") {
  const Result padding = leakcheck("decoder-in-tiles --break padding");
  CHECK(padding.exit_code == 1);
  CHECK(
      contains(padding.text, "of 515 inputs by 515 outputs each: too many to draw\nLEAK: x position 513 of row 1 -> "));
  CHECK(
      contains(padding.text, "of 515 inputs by 5 outputs each: too many to draw\nLEAK: memory position 513 of row 1"));
  CHECK(leakcheck("decoder-in-tiles --break causal").text.ends_with("\n2 checked, 1 leak\n"));
}
