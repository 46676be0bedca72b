// Chapter 0. Tests of `orrery toy` as its users type it, stopped and resumed too.
#include <filesystem>

#include "apps/program/option_file.h"
#include "apps/tasks/toy/task.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

TEST_CASE("toy prints five answers, a picture, the hash on the line before the last, and the exact match") {
  const Result result = run(quick_toy + "--hash");
  CHECK(result.exit_code == 0);
  for (int i = 0; i < 5; ++i) CHECK(contains(line(result.text, i), "  ->  "));
  CHECK(contains(result.text, "cross-attention, decoder layer 0, head "));
  CHECK(line(result.text, -2).starts_with("hash "));
  CHECK(line(result.text, -2).size() == 5 + 16);
  CHECK(line(result.text, -1).starts_with("exact match "));
  CHECK(contains(line(result.text, -1), "/1000, trained in "));
  CHECK(contains(line(result.text, -1), " s, decoded in "));
}

TEST_CASE("toy writes every head of its five answers as a page, if the file's name ends in .html") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "heads.html";
  REQUIRE(run(quick_toy + "--attention '" + file + "'").exit_code == 0);
  const std::string page = orrery::contents(file);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "What every head of the toy reads (task: reverse)"));
  CHECK(times(page, "{\"source\":") == 5);
  check_usage_error("toy --max-length 512 --encoder-layers 24 --attention '" + file + "'", "--attention",
                    "takes at most 4000000 weights");
}

TEST_CASE("figure draws what toy writes for it, and takes no data for what it computes") {
  const orrery::TemporaryFolder folder;
  const std::string losses = folder / "losses.json", attention = folder / "attention.json",
                    heads = folder / "heads.json";
  REQUIRE(run(quick_toy + "--losses '" + losses + "' --attention '" + attention + "' --every-head '" + heads + "'")
              .exit_code == 0);
  CHECK(contains(run("figure toy_loss --data '" + losses + "'").text, "The toy learns to reverse: every step"));
  CHECK(contains(run("figure attention --data '" + attention + "'").text, "task: reverse; decoder layer 0"));
  const std::string all = run("figure toy_heads --data '" + heads + "'").text;
  CHECK(contains(all, "What every head of the toy reads (task: reverse)"));
  CHECK(contains(all, "layer 0, head 1"));
  check_failure(quoted_program + "figure toy_loss --data '" + attention + "'", "has no field \"steps\"");
  check_failure(quoted_program + "figure toy_heads --data '" + attention + "'", "has no field \"source\"");
  const std::string numbers = orrery::contents(attention), other_name = folder / "./attention.json";
  for (const std::string& out : {attention, other_name})
    check_failure(quoted_program + "figure attention --data '" + attention + "' --out '" + out + "'",
                  "--out " + out + " would write over the numbers to draw");
  CHECK(orrery::contents(attention) == numbers);
  check_failure(quoted_program + quick_toy + "--losses /nowhere/losses", "/nowhere/losses");
  check_failure(quoted_program + quick_toy + "--every-head /nowhere/heads", "/nowhere/heads");
  check_usage_error("toy --max-length 512 --every-head '" + heads + "'", "--every-head",
                    "takes at most 200000 weights");
}

TEST_CASE("a saved model is rebuilt from its file and answers lines") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  REQUIRE(run(quick_toy + "--save '" + file + "'").exit_code == 0);
  const auto answered = [&](const std::string& lines, const std::string& redirect) {
    return shell("printf '" + lines + "' | " + quoted_program + "toy --load '" + file + "' " + redirect);
  };
  const Result first = answered("a b c d e f g h\\n\\nmmmmmmmm\\n", "2>&1");
  CHECK(first.exit_code == 0);
  CHECK(std::count(first.text.begin(), first.text.end(), '\n') == 2);
  CHECK(answered("a b c d e f g h\\n\\nmmmmmmmm\\n", "2>&1").text == first.text);
  // What has no answer is an error, what the model has not learnt a warning, and the rest is answered.
  const std::string lines = "a b z\\nabcdefgh\\nabcdefghij\\nab\\n";
  const Result mixed = answered(lines, "2>/dev/null"), told = answered(lines, "2>&1 >/dev/null");
  CHECK(mixed.exit_code == 1);
  CHECK(std::count(mixed.text.begin(), mixed.text.end(), '\n') == 2);
  CHECK(line(mixed.text, 0) == line(first.text, 0));
  CHECK(told.text ==
        "orrery: toy: line 1: symbol 3 of 'a b z' is not one of a to m\n"
        "orrery: toy: line 3: a line needs 1 to 9 symbols, got 10\n"
        "warning: line 4 has 2 symbols, and the model was trained on 8 to 9\n");
  // Once nobody reads the answers any more, no more are made.
  const std::string code = folder / "code";
  shell("yes abcdefgh | { timeout 60 " + quoted_program + "toy --load '" + file + "' 2>/dev/null; echo $? >'" + code +
        "'; } | head -1");
  CHECK(orrery::contents(code) == "0\n");  // no error; 124 would be the time limit
  shell("truncate -s 1000 '" + file + "'");
  check_failure(quoted_program + "toy --load '" + file + "' </dev/null", "model.safetensors");
  check_failure(quoted_program + "toy --load /nowhere/model </dev/null", "/nowhere/model");
}

TEST_CASE("options from a model never say which files are written") {
  const orrery::TemporaryFolder folder;
  const std::string model = folder / "model";
  orrery::write_safetensors(model, {{"x", orrery::zeros({1})}},
                            {{orrery::options_key, R"({"log":")" + (folder / "victim") + "\"}"}});
  check_failure(quoted_program + "toy --config '" + model + "'", "there is no option \"log\"");
  CHECK(folder.count() == 1);
  orrery::set_contents(model, orrery::contents(model).substr(0, 100));
  check_failure(quoted_program + "toy --config '" + model + "'", "read " + model + ": ");
  CHECK_FALSE(contains(errors("toy --config '" + model + "'").text, "JSON"));
}

TEST_CASE("a stdin that cannot be read is an error") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model";
  REQUIRE(run(quick_toy + "--save '" + file + "'").exit_code == 0);
  check_failure(quoted_program + "toy --load '" + file + "' < /tmp", "cannot be read from stdin");
}

TEST_CASE("at a terminal the user is told what to type, and in a pipe nobody is") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  REQUIRE(run(quick_toy + "--save '" + file + "'").exit_code == 0);
  const std::string command = quoted_program + "toy --load '" + file + "'";
  const Result person = shell("{ sleep 0.5; echo abcdefgh; sleep 0.5; } | script -qec \"" + command + "\" /dev/null");
  CHECK(contains(person.text, "Type 8 to 9 symbols of a to m and Enter; Ctrl-D ends."));
  CHECK(contains(person.text, "reverse> "));
  CHECK(shell("echo abcdefgh | " + command + " 2>&1 >/dev/null").text.empty());
}

TEST_CASE("Adam's numbers and the negations of a preset's flags are options") {
  const std::string hash = trained_hash(quick_toy + "--hash");
  for (const std::string option : {"--beta1 0.8", "--beta2 0.9", "--eps 1e-3", "--norm-first", "--final-norm"}) {
    CAPTURE(option);
    CHECK(trained_hash(quick_toy + "--hash " + option) != hash);
  }
  CHECK(trained_hash(quick_toy + "--hash --no-norm-first --beta1 0.9 --beta2 0.98 --eps 1e-9") == hash);
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  REQUIRE(run("toy --preset annotated --steps 1 --batch 2 --d-model 8 --heads 2 --d-ff 8 --no-final-norm --save '" +
              file + "'")
              .exit_code == 0);
  const auto config = orrery::nn::TransformerConfig::of_json(orrery::read_safetensors_metadata(file).at("config"));
  CHECK(config.layer.norm_first);
  CHECK_FALSE(config.final_norm);
}

TEST_CASE("the toy is evaluated, averaged, and ended for want of a lower loss as the recipe says") {
  const orrery::TemporaryFolder folder;
  const std::string log = folder / "log";
  const std::string train = "toy --steps 8 --evaluate-every 3 --log '" + log + "' " + small_toy_options;
  const Result result = errors(train);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "\nstep 3: validation loss "));
  CHECK(contains(result.text, "\nstep 8: validation loss "));
  CHECK(contains(result.text, "step 4/8  loss "));
  CHECK(contains(result.text, "  validation "));
  CHECK(contains(orrery::contents(log), "{\"step\":6,\"validation\":"));
  const Result patient = errors(train + "--overwrite --rate 0 --patience 1");
  CHECK(contains(patient.text, "the last evaluation was not the best: the training ends\n"));
  CHECK_FALSE(contains(patient.text, "step 8: "));
  // The best model and averages change what is examined and saved, not how the toy trains.
  const std::string hash = trained_hash(train + "--overwrite --hash");
  const auto saved = [&](const std::string& options) {
    const std::string file = folder / "model";
    const Result trained = run(train + "--hash --overwrite --save '" + file + "' " + options);
    CHECK(hash_in(trained.text) == hash);
    return orrery::read_safetensors(file).tensors.at("src_embed.weight");
  };
  const orrery::Tensor last = saved("");
  CHECK_FALSE(orrery::same_bits(saved("--average 0.9"), last));
  CHECK_FALSE(orrery::same_bits(saved("--average-last 2"), last));
}

TEST_CASE("options in a file train the toy to the same bits, from JSON or from what a training saved") {
  const orrery::TemporaryFolder folder;
  const std::string json = folder / "toy.json", model = folder / "model", other = folder / "other";
  const std::string unseeded =
      "toy --preset annotated --steps 3 --batch 4 --d-model 8 --heads 2 --d-ff 8 --micro-batches 2 "
      "--optimizer adamw --schedule cosine --rate 0.003 --last-rate 1e-5 --warmup 1 ";
  const std::string options = unseeded + "--seed 3 ";
  const Result plain = run(options + "--hash --save '" + model + "'");
  REQUIRE(plain.exit_code == 0);
  const std::string hash = hash_in(plain.text);
  REQUIRE(hash != "");
  const Result printed = run(options + "--print-config");
  CHECK(printed.exit_code == 0);
  CHECK(contains(printed.text, "\"preset\": \"annotated\""));
  CHECK(contains(printed.text, "\"norm-first\": true"));
  CHECK(contains(printed.text, "\"schedule\": \"cosine\""));
  CHECK(orrery::read_safetensors_metadata(model).at("options") + "\n" == printed.text);
  CHECK(contains(run("inspect '" + model + "'").text, "  options: preset annotated, task copy, "));
  orrery::set_contents(json, printed.text);
  CHECK(trained_hash("toy --hash --config '" + json + "'") == hash);
  CHECK(trained_hash("toy --hash --config '" + model + "' --save '" + other + "'") == hash);
  CHECK(orrery::contents(other) == orrery::contents(model));
  CHECK(run("toy --print-config --config '" + model + "'").text == printed.text);
  const std::string seed_4 = trained_hash(unseeded + "--hash --seed 4");
  CHECK(trained_hash("toy --hash --seed 4 --config '" + json + "'") == seed_4);
  CHECK(seed_4 != hash);
  orrery::set_contents(json, "{\"seed\": 4}");
  CHECK(trained_hash(unseeded + "--hash --config '" + json + "'") == seed_4);
  const std::string run_folder = folder / "run/";
  REQUIRE(run(options + "--save '" + run_folder + "'").exit_code == 0);
  CHECK(run("toy --print-config --config '" + run_folder + "'").text == printed.text);
  for (const std::string output : {"--losses", "--attention", "--every-head", "--page"})
    check_failure(quoted_program + "toy --config '" + json + "' " + output + " '" + json + "'",
                  output + ' ' + json + " would write over the file of --config");
  CHECK(orrery::contents(json) == "{\"seed\": 4}");
}

TEST_CASE("wrong values are refused before the training begins") {
  check_usage_error("toy --patience 2", "--patience", "need --evaluate-every");
  check_usage_error("toy --warmup 0", "--schedule", "--warmup of at least 1");
  check_usage_error("toy --heads 3", "--heads", "--d-model, 64");
  check_usage_error("toy --min-length 17", "--min-length", "--max-length, 16");
  check_usage_error("toy --preset annotated --max-length 20", "--min-length", "must equal --max-length, 20");
  check_usage_error("toy --preset annotated --task reverse", "--task", "answers begin with symbol 1");
  check_usage_error("toy --load x --task sort", "--load", "--task");
  check_failure(quoted_program + "toy --save /tmp", "is a folder");
  for (const size_t letters : {300, 250}) {  // the second is too long with ".resume.tmp" after it
    const std::string name = "/tmp/" + std::string(letters, 'x');
    check_failure(quoted_program + "toy --save " + name, "orrery: toy: cannot write to --save " + name);
    check_failure(quoted_program + "toy --save " + name, ": File name too long");
  }
  const orrery::TemporaryFolder folder;
  check_failure(quoted_program + "toy --log '" + (folder / "a") + "' --losses '" + (folder / "./a") + "'",
                "--log and --losses name the same file, " + (folder / "a"));
  CHECK(folder.count() == 0);
  std::filesystem::create_symlink(folder / "circle", folder / "circle");
  check_failure(quoted_program + "toy --save '" + (folder / "circle") + "'", "Too many levels of symbolic links");
}

TEST_CASE("--require turns too few right answers into a failure") {
  const Result result = run(quick_toy + "--require 0.5");
  CHECK(result.exit_code == 1);
  CHECK(line(result.text, -1).starts_with("exact match "));
}

TEST_CASE("the Annotated Transformer's preset can be changed, and counts as far as there are symbols") {
  const Result result = run("toy --preset annotated --symbols 5 --steps 2 --batch 4 --d-model 8 --heads 2 --d-ff 8");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "copy  1 2 3 4 5  ->  "));
}

TEST_CASE("what the sharpest head looks at is written last, and never over a model") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model.safetensors", inner = folder / "inner";
  std::filesystem::create_directory(inner);
  // The folder is lost while the toy trains: the exam is printed and the model saved before that is told.
  const Result lost =
      shell(quoted_program + "toy --steps 3000 " + small_toy_options + "--hash --save '" + file + "' --attention '" +
            inner + "/a.json' 2>'" + (folder / "log") + "' & until grep -q ^step '" + (folder / "log") +
            "'; do kill -0 $! || break; sleep 0.01; done; rm -r '" + inner + "'; wait $!");
  CHECK(lost.exit_code == 1);
  CHECK(line(lost.text, -2).starts_with("hash "));
  CHECK(line(lost.text, -1).starts_with("exact match "));
  const std::string log = orrery::contents(folder / "log");
  CHECK(contains(log, "\nsaved to " + file + "\n"));
  CHECK(contains(line(log, -1), "orrery: write " + inner + "/a.json: "));
  const std::string kept = orrery::contents(file), other = folder / "other";
  for (const std::string& arguments : {quick_toy + "--attention '" + file + "'", quick_toy + "--losses '" + file + "'",
                                       quick_toy + "--every-head '" + file + "'", quick_toy + "--log '" + file + "'",
                                       "figure attention --out '" + file + "'", "gradcheck relu --json '" + file + "'",
                                       "bench gemm --json '" + file + "'"}) {
    CAPTURE(arguments);
    check_failure(quoted_program + arguments, file + " is a file that holds a model; name another, or remove it");
    CHECK(orrery::contents(file) == kept);
  }
  for (const std::string& attention : {other, folder / "./other", other + ".lock", other + ".tmp"})
    check_failure(quoted_program + quick_toy + "--save '" + other + "' --attention '" + attention + "'",
                  "would write over the files of --save " + other);
  CHECK_FALSE(std::filesystem::exists(other));
  CHECK(run(quick_toy + "--save '" + other + "' --attention '" + other + ".json'").exit_code == 0);
  CHECK(run("figure attention --data '" + other + ".json'").text.starts_with("<svg"));
}

TEST_CASE("long: each task is learnt with the defaults") {
  for (const std::string task : {"reverse", "copy", "sort"}) {
    const Result result = run("toy --task " + task + " --require 0.995");
    MESSAGE(task << ": " << line(result.text, -1));
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("seeds: reverse and copy reach 1000 of 1000, and sort at least 998, for seeds 1 to 5") {
  for (const std::string task : {"reverse", "copy", "sort"}) {
    for (int seed = 1; seed <= 5; ++seed) {
      const std::string required = task == "sort" ? "0.998" : "1";
      const Result result = run("toy --task " + task + " --seed " + std::to_string(seed) + " --require " + required);
      MESSAGE(task << " seed " << seed << ": " << line(result.text, -1));
      CHECK(result.exit_code == 0);
    }
  }
}

TEST_CASE("long: the Annotated Transformer's copy task counts to ten") {
  const Result result = run("toy --preset annotated");
  MESSAGE(line(result.text, -1));
  CHECK(contains(result.text, "copy  1 2 3 4 5 6 7 8 9 10  ->  1 2 3 4 5 6 7 8 9 10\n"));
}

TEST_CASE("a training whose loss leaves all bounds fails with one line, and saves its best model if it has one") {
  const orrery::TemporaryFolder folder;
  const std::string model = folder / "model", diverging =
                                                  " --norm-first --schedule constant --warmup 1 --rate 10 --clip 0 "
                                                  "--cooldown 0 --steps 60 --batch 2 --d-model 8 --d-ff 8 --heads 1 "
                                                  "--encoder-layers 1 --decoder-layers 1 ";
  const Result lost = errors("toy" + diverging + "--save '" + model + "'");
  CHECK(lost.exit_code == 1);
  CHECK(contains(line(lost.text, -1), "the training has diverged"));
  CHECK_FALSE(std::filesystem::exists(model));
  const Result kept = errors("toy" + diverging + "--evaluate-every 1 --save '" + model + "'");
  CHECK(kept.exit_code == 1);
  CHECK(contains(line(kept.text, -1), "; the best model, of step "));
  CHECK(std::filesystem::exists(model));
}

// Its warm-up is long: it diverges only after hundreds of steps.
TEST_CASE("long: a rate that is far too large after the usual warm-up ends the training with exit code 1") {
  const Result lost = errors("toy --rate 100 --clip 0");
  CHECK(lost.exit_code == 1);
  CHECK_MESSAGE(contains(line(lost.text, -1), "the training has diverged"), lost.text);
}

namespace {

// Starts a training in the background, waits for `condition`, and stops it with Ctrl-C's signal.
Result stopped_when(const std::string& condition, const std::string& arguments, const std::string& log) {
  return shell(quoted_program + arguments + " 2>'" + log + "' & until " + condition +
               "; do kill -0 $! || break; sleep 0.01; done; kill -INT $!; wait $!");
}

}  // namespace

TEST_CASE("a toy that was stopped goes on to the bits of one that was not, at another number of threads") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "model", log = folder / "log", json = folder / "json";
  const std::string recipe = "toy --steps 3000 --seed 3 --dropout 0.2 --products blas --hash " + small_toy_options;
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
  check_usage_error(resume + "--products blas", "--resume", "--products");
  check_usage_error(resume + "--precision bf16", "--resume", "--precision");
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
  REQUIRE(errors(train + "--time-limit 0.0001 --save '" + file + "'").exit_code == 130);
  CHECK(orrery::read_safetensors_metadata(file + ".resume").at("options") + "\n" == printed);
  CHECK(line(run("toy --hash --threads 1 --resume '" + file + "'").text, -2) == whole);
  CHECK(orrery::read_safetensors_metadata(file).at("options") + "\n" == printed);
  CHECK(line(run("toy --hash --threads 1 --config '" + file + "'").text, -2) == whole);
}
