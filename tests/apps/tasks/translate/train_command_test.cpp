// Chapter 9. Tests of `orrery translate train` as its users type it.

#include "apps/tasks/translate/model.h"
#include "core/files/safetensors.h"
#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using orrery::contents;
using orrery::set_contents;
using orrery::TemporaryFolder;

namespace {

// Learns next to nothing, in a moment; dropout is on.
const std::string quick_model =
    "--segmented --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 "
    "--batch-tokens 40 --warmup 2 ";

// Files of invented sentences in a folder of their own.
struct AnimalFiles {
  AnimalFiles() {
    const orrery::small::AnimalText text = orrery::small::animal_text();
    set_contents(english, text.english);
    set_contents(german, text.german);
  }
  TemporaryFolder folder;
  const std::string english = folder / "a.en", german = folder / "a.de", model = folder / "model";
  const std::string files = "--source '" + english + "' --target '" + german + "' ";
  const std::string train = "translate train " + files + quick_model + "--max-tokens 20 ";
};

}  // namespace

TEST_CASE("one command trains a translator on two files, reports its loss and saves it") {
  const AnimalFiles animals;
  const std::string command = animals.train + "--steps 4 --evaluate-every 2 --hash --save '" + animals.model + "'";
  const Result trained = run(command);
  CHECK(trained.exit_code == 0);
  CHECK(line(trained.text, 0).starts_with("the "));
  CHECK(contains(line(trained.text, 0), " .  ->"));
  CHECK(line(trained.text, -2).starts_with("hash "));
  double loss = 0, perplexity = 0, lowest = 0, step = 0, seconds = 0;
  CHECK(std::sscanf(line(trained.text, -1).c_str(),
                    "validation loss %lf per token, perplexity %lf (lowest %lf at step %lf) in %lf s", &loss,
                    &perplexity, &lowest, &step, &seconds) == 5);
  CHECK(loss > 1);
  CHECK(loss < 5);
  CHECK(animals.folder.count() == 3);  // the texts and the model, and nothing to resume
  CHECK(orrery::translate::load_translator(animals.model).vocabulary.is_segmented());

  const std::string progress = errors(command + " --overwrite").text;
  CHECK(contains(progress, "training: 19 pairs, "));
  CHECK(contains(progress, "validation, held out of these files: 1 pair, "));
  CHECK(contains(progress, " tokens, as segmented\n"));
  CHECK(contains(progress, "\nexpected time "));
  CHECK(contains(progress, "step 2: validation loss "));
  CHECK(contains(progress, "\n  the "));
  CHECK(contains(progress, "\nsaved to " + animals.model));
}

TEST_CASE("text that is not segmented gets a vocabulary of SentencePiece, and nothing else on stderr") {
  const AnimalFiles animals;
  const std::string options =
      " --vocab-size 60 --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 "
      "--max-tokens 60 --batch-tokens 100 --steps 2 --save '" +
      animals.model + "'";
  const Result result = errors("translate train " + animals.files + options);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, " tokens, by SentencePiece\n"));
  CHECK_FALSE(contains(result.text, "trainer"));
  CHECK_FALSE(orrery::translate::load_translator(animals.model).vocabulary.is_segmented());
}

TEST_CASE("validation files are used if they are given") {
  const AnimalFiles animals;
  const std::string valid = "--valid-source '" + animals.english + "' --valid-target '" + animals.german + "' ";
  const std::string text = errors(animals.train + valid + "--steps 1").text;
  CHECK(contains(text, "training: 20 pairs, "));
  CHECK(contains(text, "\nvalidation: 20 pairs, "));
  check_usage_error(animals.train + "--valid-source '" + animals.english + "'", "--valid-target", "together");
}

TEST_CASE("a training that was stopped is resumed to the bits of one that was not") {
  const AnimalFiles animals;
  const std::string recipe = animals.train + "--steps 400 --evaluate-every 40 --patience 0 --hash --threads 1 ",
                    log = animals.folder / "log", model = "'" + animals.model + "'";
  const Result whole = run(recipe);
  REQUIRE(whole.exit_code == 0);
  // Stopped by SIGTERM as soon as there is something to resume.
  const Result stopped =
      shell(quoted_program + recipe + "--save " + model + " --log '" + log + "' 2>'" + (animals.folder / "stderr") +
            "' & until [ -e " + model + ".resume ]; do kill -0 $! || break; sleep 0.01; done; kill -TERM $!; wait $!");
  REQUIRE(stopped.exit_code == 130);
  CHECK(contains(contents(animals.folder / "stderr"),
                 " of 400; to resume: orrery translate train --resume " + animals.model + " --log " + log + "\n"));
  CHECK_NOTHROW(orrery::translate::load_translator(animals.model));
  check_failure(quoted_program + recipe + "--save " + model, "continue it with --resume");
  const std::string changed = animals.folder / "changed";
  set_contents(changed, contents(animals.english) + " ");
  check_failure(quoted_program + "translate train --resume " + model + " --source '" + changed + "'",
                "is not the text that this training began with");
  set_contents(changed, "x" + contents(animals.english));
  check_failure(quoted_program + "translate train --resume " + model + " --source '" + changed + "'",
                "is not the text that this training began with");
  check_failure(quoted_program + "translate train --resume " + model + " --valid-source '" + changed +
                    "' --valid-target '" + changed + "'",
                "this training began without --valid-target ");
  // Resumed inside the folder for a few steps. The name that is given there must be known elsewhere, too.
  const Result again = shell("cd '" + animals.folder.path().string() + "'; " + quoted_program +
                             "translate train --resume model --source a.en --threads 1 --time-limit 0.0005 2>&1");
  REQUIRE(again.exit_code == 130);
  CHECK(contains(again.text, " of 400; to resume: "));
  const Result resumed = run("translate train --hash --threads 2 --resume " + model + " --log '" + log + "'");
  CHECK(resumed.exit_code == 0);
  CHECK(line(resumed.text, -2) == line(whole.text, -2));
  CHECK(resumed.text.substr(0, resumed.text.find(" in ")) == whole.text.substr(0, whole.text.find(" in ")));
  CHECK(contains(contents(log), "\n{\"step\":400,\"validation\":"));
  check_failure(quoted_program + "translate train --resume " + model, "is finished, or was never started");
}

TEST_CASE("an unfinished training is no model, and is refused if its parts do not fit together") {
  const AnimalFiles animals;
  REQUIRE(errors(animals.train + "--steps 100000000 --evaluate-every 100000 --time-limit 0.002 --save '" +
                 animals.model + "'")
              .exit_code == 130);
  const std::string file = animals.model + ".resume", whole = contents(file),
                    resume = quoted_program + "translate train --resume '" + animals.model + "'";
  check_failure(quoted_program + "translate decode --load '" + file + "' </dev/null",
                file + " is an unfinished training; its model is in the file without .resume");
  const auto check_refused = [&](const auto& change, const std::string& message) {
    orrery::TensorFile changed = orrery::read_safetensors(file);
    change(changed);
    orrery::write_safetensors(file, changed.tensors, changed.metadata);
    check_failure(resume, message);
    set_contents(file, whole);
  };
  check_refused(
      [](orrery::TensorFile& f) {
        std::erase_if(f.tensors, [](const auto& entry) { return entry.first.starts_with("parameter.decoder."); });
      },
      "translate: the saved state has no parameter.decoder.");
  check_refused([](orrery::TensorFile& f) { f.metadata.erase("vocabulary"); }, "it has no vocabulary");
  check_refused([](orrery::TensorFile& f) { f.metadata["origin"] = "{}"; }, "it was made by an earlier version");
  const auto with_options = [](const std::string& from, const std::string& to) {
    return [=](orrery::TensorFile& f) {
      std::string& options = f.metadata.at("options");
      REQUIRE(contains(options, from));
      options.replace(options.find(from), from.size(), to);
    };
  };
  check_refused(with_options("\"max-tokens\": 20", "\"max-tokens\": 65536"), "load " + file + ": --batch-tokens: ");
}

TEST_CASE("--minutes fits batch and steps to few pairs, ends early, and says how to train the same again") {
  const AnimalFiles animals;
  const std::string model = "--segmented --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 ";
  const Result fitted =
      run("translate train " + animals.files + model + "--max-tokens 20 --minutes 2 --seed 4 --hash", "2>&1");
  INFO(fitted.text);
  REQUIRE(fitted.exit_code == 0);
  orrery::i64 batch = 0, steps = 0, epochs = 0;
  double rate = 0;
  const size_t chosen = fitted.text.find("chosen: ");
  REQUIRE(chosen != fitted.text.npos);
  REQUIRE(std::sscanf(fitted.text.c_str() + chosen, "chosen: batches of %ld, rate %lf, %ld steps, %ld epochs", &batch,
                      &rate, &steps, &epochs) == 4);
  CHECK(batch < 100);
  CHECK(epochs > 100);
  CHECK(steps == 1000);
  CHECK(contains(fitted.text, "step " + std::to_string(steps) + ": validation loss "));
  const std::string again = "the same again: orrery ", command = fitted.text.substr(fitted.text.find(again));
  CHECK(contains(command, " --batch-tokens " + std::to_string(batch) + " "));
  CHECK(trained_hash(command.substr(again.size(), command.find('\n') - again.size()) + " --hash") ==
        hash_in(fitted.text));
  const std::string one = "translate train --source a --target b --minutes 1 ";
  check_usage_error(one + "--batch-tokens 512", "--batch-tokens", " excludes --minutes");
  check_usage_error(one + "--average-last 2", "--average-last", " excludes --minutes");
}

TEST_CASE("a recurrent and a convolutional model are trained, saved, repeated and used by the same commands") {
  const AnimalFiles animals;
  for (const std::string model : {"recurrent --d-encoder 4 --d-decoder 8 --d-attention 4 --d-output 6",
                                  "convolutional --d-hidden 8 --encoder-layers 1 --decoder-layers 1"}) {
    CAPTURE(model);
    const std::string train = "translate train " + animals.files + "--model " + model +
                              " --d-embedding 6 --segmented --batch-tokens 40 --max-tokens 20 --steps 4 --hash ";
    const Result trained = run(train + "--overwrite --save '" + animals.model + "'");
    REQUIRE(trained.exit_code == 0);
    CHECK(name_of(orrery::translate::load_translator(animals.model).model->kind()) == model.substr(0, model.find(' ')));
    CHECK(line(run("translate train --hash --config '" + animals.model + "'").text, -2) == line(trained.text, -2));
    const std::string text = "'" + animals.english + "'";
    const std::string translated = run("translate decode --load '" + animals.model + "' " + text).text;
    CHECK(std::count(translated.begin(), translated.end(), '\n') == 20);
  }
}

TEST_CASE("bad files say so in one line, before any training") {
  const AnimalFiles animals;
  const std::string& folder = animals.folder.path().string();
  const auto train_on = [&](const std::string& english, const std::string& german) {
    set_contents(animals.english, english);
    set_contents(animals.german, german);
    return quoted_program + animals.train + "--steps 1";
  };
  check_failure(train_on("a\nb\n", "x\n"), "/a.en has 2 lines and " + folder + "/a.de has 1; line i of one must be");
  check_failure(train_on("", "x\n"), "/a.en is empty");
  check_failure(train_on("a\n", "x\n"), "the files have 1 usable pair");
  check_failure(train_on("\n\n\n", "x\ny\nz\n"),
                "the files have 0 usable pairs: 0 of 3 pairs (left out: 3 with an empty side)");
  check_failure(train_on("\xff\n\xfe\n", "x\ny\n"), "0 usable pairs: 0 of 2 pairs (left out: 2 not UTF-8 text)");
  check_failure(quoted_program + "translate train --source /nowhere/a --target /nowhere/b", "/nowhere/a");
  check_failure(quoted_program + "translate train --source /tmp --target /tmp", "/tmp: is a directory");
}

TEST_CASE("no text is written over, and what cannot be saved is said before the training") {
  const AnimalFiles animals;
  const std::string kept = contents(animals.german), train = quoted_program + animals.train + "--steps 1 ";
  check_failure(train + "--save '" + animals.german + "'", "would write over --target " + animals.german);
  check_failure(train + "--save /dev/full", "is not a regular file");
  const Result full = shell("ulimit -f 2; " + train + "--save '" + animals.model + "' 2>&1 >/dev/null");
  CHECK(full.exit_code == 1);
  CHECK(contains(full.text, "do not fit there"));
  CHECK_FALSE(contains(full.text, "expected time"));
  REQUIRE(shell(train + "--save '" + animals.model + "' 2>/dev/null").exit_code == 0);
  check_failure(train + "--save '" + animals.model + "'", "already holds a model: --overwrite replaces it");
  CHECK(contents(animals.german) == kept);
}

TEST_CASE("wrong values are refused before the training begins") {
  check_usage_error("translate train --source a --target b --heads 3", "--heads", "--d-model, 128");
  check_usage_error("translate train --source a --target b --batch-tokens 256", "--batch-tokens", "--max-tokens, 256");
  check_usage_error("translate train --source a --target b --preset huge", "'huge'", "tiny, published, small, base");
  check_usage_error("translate train --print-config --model oracle", "'oracle'",
                    "transformer, recurrent, convolutional");
  check_usage_error("translate train --print-config --model recurrent --preset base", "--preset base",
                    "is a Transformer, not a recurrent model");
  for (const auto& [kind, option] : {std::pair("recurrent", "--d-model 64"),
                                     {"transformer", "--d-hidden 64"},
                                     {"transformer", "--d-embedding 64"},
                                     {"recurrent", "--encoder-layers 2"},
                                     {"convolutional", "--no-norm-first"}}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    check_usage_error("translate train --print-config --model " + std::string(kind) + ' ' + option,
                      name == "--no-norm-first" ? "--norm-first" : name,
                      "is no option of --model " + std::string(kind));
  }
  const std::string recurrent = run("translate train --print-config --model recurrent").text;
  CHECK(contains(recurrent, "\"d-decoder\""));
  CHECK_FALSE(contains(recurrent, "\"d-hidden\""));
  CHECK_FALSE(contains(recurrent, "\"d-model\""));
  check_usage_error("translate train --print-config --model convolutional --width 4", "--width", "must be odd");
  check_usage_error("translate train --print-config --evaluate-every 0", "--average-last", "--evaluate-every");
}

TEST_CASE("text may be in a file whose name is not UTF-8; --resume then needs the name again") {
  const AnimalFiles animals;
  const std::string english = animals.folder / "a\xFF.en", model = "'" + animals.model + "'";
  set_contents(english, contents(animals.english));
  const std::string files = "--source '" + english + "' --target '" + animals.german + "' ",
                    stop = "--max-tokens 20 --steps 100000000 --evaluate-every 2 --time-limit 0.005 ";
  const Result stopped = errors("translate train " + files + quick_model + stop + "--save " + model);
  CHECK(stopped.exit_code == 130);
  CHECK(contains(stopped.text, "to resume: "));
  check_failure(quoted_program + "translate train --resume " + model, "No such file or directory");
  const Result resumed = errors("translate train --time-limit 0.005 --resume " + model + " --source '" + english + "'");
  CHECK(resumed.exit_code == 130);
  CHECK(contains(resumed.text, "resuming after step "));
}

TEST_CASE("the sample of an early model is one line, without blanks at its end") {
  const AnimalFiles animals;
  const std::string text = errors(animals.train + "--steps 4 --evaluate-every 1 --rate 0 --dropout 0").text;
  std::istringstream in(text);
  int samples = 0;
  for (std::string one; std::getline(in, one);) {
    if (!contains(one, "  ->")) continue;
    ++samples;
    CHECK(one.size() <= 200);
    CHECK_FALSE(one.ends_with(' '));
  }
  CHECK(samples == 4);
}
