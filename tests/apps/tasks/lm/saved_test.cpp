// Chapter 9. Tests of `orrery lm eval`, and of models that `orrery lm` did not save.
#include <cmath>

#include "tests/apps/lm_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

TEST_CASE("lm eval gives the loss that training ended with, in nats, in bits and as perplexity") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("ab\u00e4 ", 100)), file = folder / "model.safetensors";
  const Result trained = run("lm train '" + text + "' " + quick_lm + "--save '" + file + "'");
  REQUIRE(trained.exit_code == 0);
  const std::string eval = "lm eval --load '" + file + "' ";
  const Result judged = run(eval + "'" + text + "'");
  CHECK(judged.exit_code == 0);
  const std::string as_trained = line(trained.text, -1).substr(0, sizeof "validation loss 1.2345" - 1);
  CHECK(judged.text.starts_with(as_trained + " nats, "));
  double nats = 0, bits = 0, per_byte = 0, perplexity = 0;
  REQUIRE(std::sscanf(judged.text.c_str(),
                      "validation loss %lf nats, %lf bits per character, %lf per byte, perplexity %lf", &nats, &bits,
                      &per_byte, &perplexity) == 4);
  CHECK(bits == doctest::Approx(nats / std::log(2.0)).epsilon(1e-3));
  CHECK(per_byte == doctest::Approx(bits * 39 / 49).epsilon(1e-3));  // of 40 characters, 10 have two bytes
  CHECK(perplexity == doctest::Approx(std::exp(nats)).epsilon(1e-3));
  CHECK(run(eval + "--threads 1 '" + text + "'").text == judged.text);
  CHECK(contains(errors(eval + "'" + text + "'").text, "evaluated on the last 40 characters of " + text));
  CHECK(contains(errors(eval + "--whole '" + text + "'").text, "evaluated on all 400 characters of " + text));
  CHECK(run(eval + "--whole '" + text + "'").text.starts_with("loss "));
  CHECK(run(eval + "--whole '" + written(folder / "short", "ab") + "'").exit_code == 0);
  check_failure(quoted_program + eval + "--whole '" + written(folder / "shorter", "a") + "'",
                "is too short: it needs at least two characters");
  check_failure(
      quoted_program + eval + "'" + (folder / "short") + "'",
      "is too short: of its 2 characters only the last tenth would count, and at least two must; --whole takes all");
  check_failure(quoted_program + eval + "'" + (folder / "short") + "' '" + (folder / "shorter") + "'",
                "the text of " + (folder / "short") + " and 1 more is too short: of its 3 characters");
  check_failure(quoted_program + eval, "is not one of the model's 4");  // Shakespeare's characters
  check_failure(quoted_program + eval + "/nowhere/text", "/nowhere/text");
  check_failure(quoted_program + "lm eval --load '" + text + "'", text);
}

TEST_CASE("lm eval with a stride: the model's length is the plain evaluation, and several files are one text") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abcdefgh ijkl\n", 100)), file = folder / "model";
  const std::string rest = written(folder / "rest", repeated("abcd ", 100));
  REQUIRE(run("lm train '" + text + "' " + tiny + "--steps 300 --rate 0.01 --evaluate-every 0 --save '" + file + "'")
              .exit_code == 0);
  const auto loss = [&](const std::string& options) {
    double nats = 0;
    REQUIRE(std::sscanf(run("lm eval --load '" + file + "' --whole " + options).text.c_str(), "loss %lf", &nats) == 1);
    return nats;
  };
  const std::string plain = run("lm eval --load '" + file + "' --whole '" + text + "'").text;
  CHECK(run("lm eval --load '" + file + "' --whole --stride 8 '" + text + "'").text == plain);
  CHECK(loss("--stride 1 '" + text + "'") != loss("'" + text + "'"));
  CHECK(
      loss("--stride 3 '" + text + "' '" + rest + "'") ==
      loss("--stride 3 '" + written(folder / "both", repeated("abcdefgh ijkl\n", 100) + repeated("abcd ", 100)) + "'"));
  CHECK(contains(errors("lm eval --load '" + file + "' --whole '" + text + "' '" + rest + "'").text,
                 "evaluated on all 1900 characters of " + text + " and 1 more"));
  check_usage_error("lm eval --load '" + file + "' --stride 9", "--stride", "at most the model's length, 8");
  check_usage_error("lm eval --load '" + file + "' --stride 0", "--stride", "from 1 to");
}

TEST_CASE("a file that holds another model is refused") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "toy.safetensors";
  REQUIRE(run("toy --steps 1 --batch 2 --d-model 8 --heads 2 --d-ff 8 --save '" + file + "'").exit_code == 0);
  for (const std::string use : {"sample", "eval"})
    check_failure(quoted_program + "lm " + use + " --load '" + file + "'", "was not saved by orrery lm");
}
