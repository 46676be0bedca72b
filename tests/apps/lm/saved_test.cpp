// Chapter 9. Tests of `orrery lm eval`, and of models that `orrery lm` did not save.
#include <cmath>

#include "tests/apps/lm_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

TEST_CASE("lm eval gives the loss that training ended with, in nats, in bits and as perplexity") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", many("ab\u00e4 ", 100)), file = folder / "model.safetensors";
  const Result trained = run("lm train '" + text + "' " + quick_lm + "--save '" + file + "'");
  REQUIRE(trained.exit_code == 0);
  const std::string eval = "lm eval --load '" + file + "' ";
  const Result judged = run(eval + "'" + text + "'");
  CHECK(judged.exit_code == 0);
  const std::string as_trained = line(trained.text, -1).substr(0, sizeof "validation loss 1.2345" - 1);
  CHECK(judged.text.starts_with(as_trained + " nats, "));
  double nats = 0, bits = 0, perplexity = 0;
  REQUIRE(std::sscanf(judged.text.c_str(), "validation loss %lf nats, %lf bits per character, perplexity %lf", &nats,
                      &bits, &perplexity) == 3);
  CHECK(bits == doctest::Approx(nats / std::log(2.0)).epsilon(1e-3));
  CHECK(perplexity == doctest::Approx(std::exp(nats)).epsilon(1e-3));
  CHECK(run(eval + "--threads 1 '" + text + "'").text == judged.text);
  CHECK(contains(errors(eval + "'" + text + "'").text, "evaluated on the last 40 characters of " + text));
  CHECK(contains(errors(eval + "--whole '" + text + "'").text, "evaluated on all 400 characters of " + text));
  CHECK(run(eval + "--whole '" + text + "'").text.starts_with("loss "));
  CHECK(run(eval + "--whole '" + written(folder / "short", "ab") + "'").exit_code == 0);
  check_failure(lm_program + eval + "--whole '" + written(folder / "shorter", "a") + "'",
                "is too short: it needs at least two characters");
  check_failure(lm_program + eval + "'" + (folder / "short") + "'", "of 2 characters is too short");
  check_failure(lm_program + eval, "is not one of the model's 4");  // Shakespeare's characters
  check_failure(lm_program + eval + "/nowhere/text", "/nowhere/text");
  check_failure(lm_program + "lm eval --load '" + text + "'", text);
}

TEST_CASE("a file that holds another model is refused") {
  const orrery::TemporaryFolder folder;
  const std::string file = folder / "toy.safetensors";
  REQUIRE(run("toy --steps 1 --batch 2 --d-model 8 --heads 2 --d-ff 8 --save '" + file + "'").exit_code == 0);
  for (const std::string use : {"sample", "eval"})
    check_failure(lm_program + "lm " + use + " --load '" + file + "'", "was not saved by orrery lm");
}
