// Chapter 9. Tests of `orrery lm` with each kind of tokens: training, resuming, sampling, evaluating, several files.
#include <filesystem>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

namespace {

std::string a_text() { return repeated("the dog sees the c\u00e4t ,\n  and the cat sees the dog .\n", 60); }

struct KindOfTokens {
  std::string options, name;
};
const std::vector<KindOfTokens>& kinds_of_tokens() {
  static const std::vector<KindOfTokens> kinds{{"", " characters of 15 kinds, and "},
                                               {"--tokens bytes ", " bytes, and "},
                                               {"--tokens sentencepiece --vocab-size 300 ", " pieces of "}};
  return kinds;
}

}  // namespace

TEST_CASE("each kind of tokens trains, is saved, goes on to the same bits, samples and is evaluated") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", a_text());
  for (const KindOfTokens& kind : kinds_of_tokens()) {
    CAPTURE(kind.name);
    const std::string file = folder / "model";
    const std::string train = "lm train '" + text + "' " + tiny + kind.options +
                              "--dropout 0.1 --steps 2000 --evaluate-every 500 --estimate-batches 2 --hash ";
    const Result whole = run(train + "--threads 1"),
                 stopped = errors(train + "--threads 1 --overwrite --time-limit 0.001 --save '" + file + "'");
    REQUIRE(whole.exit_code == 0);
    REQUIRE(stopped.exit_code == 130);
    CHECK(contains(stopped.text, kind.name));
    const std::string shown = run("inspect '" + file + ".resume'").text;
    CHECK(contains(shown, "tokens: '" + (kind.options.empty() ? "chars" : kind.options.substr(9, 5))));
    const Result resumed = run("lm train --hash --threads 2 --resume '" + file + "'");
    CHECK(line(resumed.text, -2).starts_with("hash "));
    CHECK(line(resumed.text, -2) == line(whole.text, -2));
    CHECK(contains(run("inspect '" + file + "'").text, "tokens: '"));
    const Result sample = run("lm sample --load '" + file + "' --prompt 'the dog' --tokens 30 --threads 1");
    CHECK(sample.exit_code == 0);
    CHECK(sample.text.starts_with("the dog"));
    const Result judged = run("lm eval --threads 1 --load '" + file + "' '" + text + "'");
    double nats = 0, bits = 0, per_byte = 0;
    REQUIRE(std::sscanf(judged.text.c_str(), "validation loss %lf nats, %lf bits per character, %lf per byte", &nats,
                        &bits, &per_byte) == 3);
    const std::string ending = line(resumed.text, -1);
    const size_t begin = judged.text.find(", ") + 2, end = judged.text.find(", perplexity");
    CHECK(ending.ends_with(" s, " + judged.text.substr(begin, end - begin)));  // the bits
    CHECK(bits < 4);
    CHECK(per_byte < bits);
  }
}

TEST_CASE("several files are one text, and the names of all are kept") {
  const orrery::TemporaryFolder folder;
  const std::string text = a_text(), all = written(folder / "all", text), model = folder / "model";
  const std::string one = written(folder / "one", text.substr(0, 1001)),
                    two = written(folder / "two", text.substr(1001));
  const std::string files = "'" + one + "' '" + two + "' ", options = quick_lm + "--hash ";
  const Result joined = run("lm train " + files + options + "--save '" + model + "'");
  REQUIRE(joined.exit_code == 0);
  const std::string hash = line(joined.text, -2);
  CHECK(hash == line(run("lm train '" + all + "' " + options).text, -2));
  CHECK(hash != line(run("lm train '" + two + "' '" + one + "' " + options).text, -2));
  CHECK(contains(errors("lm train " + files + quick_lm).text, "texts " + one + ", " + two + ": "));
  const std::string printed = run("lm train " + files + quick_lm + "--print-config").text;
  CHECK(contains(printed, "\"FILE\": [\n    \"" + one + "\",\n    \"" + two + "\"\n  ]"));
  CHECK(line(run("lm train --hash --config '" + model + "'").text, -2) == hash);
  CHECK(line(run("lm train '" + all + "' --hash --config '" + model + "'").text, -2) == hash);
  const std::string wrong = written(folder / "wrong", R"({"FILE": [1]})");
  check_failure(quoted_program + "lm train --config '" + wrong + "'", "FILE must be text, not 1");
  check_failure(quoted_program + "lm train " + files + quick_lm + "--save '" + two + "'", "would write over the text");
  check_failure(quoted_program + "lm train " + files + quick_lm + "--log '" + two + "'", "would write over the text");
}

TEST_CASE("a separate text for validation takes none from training, and a resumed training needs the same") {
  const orrery::TemporaryFolder folder;
  const std::string train = written(folder / "train", repeated("the cat sees the dog .\n", 100)),
                    model = folder / "model";
  const std::string valid = written(folder / "valid", repeated("the dog sees\n", 10)), moved = folder / "moved";
  const std::string command = "lm train '" + train + "' --valid '" + valid + "' " + tiny + "--steps 2000 --hash ";
  const Result whole = run(command);
  CHECK(contains(errors(command).text, ": 2300 characters of 12 kinds, and 130 of " + valid + " to validate with\n"));
  REQUIRE(errors(command + "--time-limit 0.001 --save '" + model + "'").exit_code == 130);
  std::filesystem::rename(valid, moved);
  check_failure(quoted_program + "lm train --resume '" + model + "'", "No such file");
  check_failure(quoted_program + "lm train --resume '" + model + "' --valid '" + train + "'",
                "is not the text that this training began with");
  check_failure(
      quoted_program + "lm train --resume '" + model + "' '" + train + "' '" + moved + "' --valid '" + moved + "'",
      "this training began without --valid ");
  const std::string both =
      written(folder / "both", repeated("the cat sees the dog .\n", 100) + repeated("the dog sees\n", 9));
  const std::string rest = written(folder / "rest", "the dog sees\n");
  check_failure(quoted_program + "lm train --resume '" + model + "' '" + both + "' --valid '" + rest + "'",
                "is not the text that this training began with");
  CHECK(line(run("lm train --hash --resume '" + model + "' --valid '" + moved + "'").text, -2) == line(whole.text, -2));
  const std::string two = folder / "two";
  REQUIRE(errors("lm train '" + train + "' '" + moved + "' " + tiny + "--steps 2000 --time-limit 0.001 --save '" + two +
                 "'")
              .exit_code == 130);
  check_failure(quoted_program + "lm train --resume '" + two + "' '" + train + "' --valid '" + moved + "'",
                "which is now given as --valid");
  check_failure(quoted_program + command, "No such file");
  check_failure(quoted_program + "lm train '" + train + "' --valid '" + moved + "' " + tiny + "--save '" + moved + "'",
                "would write over --valid");
}

TEST_CASE("a text that is not UTF-8 names file and byte, and bytes take any file") {
  const orrery::TemporaryFolder folder;
  const std::string good = written(folder / "good", a_text()), model = folder / "model";
  const std::string binary = written(folder / "binary", "ab\xff" + std::string(2000, '\x80'));
  for (const std::string kind : {"chars", "sentencepiece"})
    check_failure(
        quoted_program + "lm train '" + good + "' '" + binary + "' --tokens " + kind,
        "read " + binary + ": text: is not UTF-8: byte 3 begins no character; a training with --tokens bytes");
  const Result trained = run("lm train '" + binary + "' --tokens bytes " + quick_lm + "--save '" + model + "'");
  CHECK(trained.exit_code == 0);
  CHECK(line(trained.text, -1).ends_with(" bits per byte"));
  CHECK(run("lm eval --load '" + model + "' --whole '" + binary + "'").exit_code == 0);
  CHECK(run("lm eval --load '" + model + "' --whole '" + good + "'").exit_code == 0);
  CHECK(run("lm train '" + binary + "' --tokens bytes " + quick_lm).exit_code == 0);
  check_failure(quoted_program + "lm train /tmp --tokens bytes", "/tmp: is a directory");
  check_failure(quoted_program + "lm train '" + written(folder / "empty", "") + "' --tokens sentencepiece", "is empty");
  check_failure(quoted_program + "lm train '" + written(folder / "short", "a b") + "' --tokens bytes",
                "must be longer than a block of 64; take more text, a smaller --block, or a text for --valid");
  check_failure(quoted_program + "lm train '" + good + "' /nowhere/text", "read /nowhere/text: No such file");
}

TEST_CASE("a model takes no text that its tokens do not fit, and no tokens that do not fit the model") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", a_text()), other = written(folder / "other", "\u4f60\u597d z\n");
  const std::string model = folder / "model";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + model + "'").exit_code == 0);
  check_failure(quoted_program + "lm eval --whole --load '" + model + "' '" + other + "'",
                "read " + other + ": text: character 1, '\u4f60', is not one of the model's 15");
  REQUIRE(run("lm train '" + text + "' --tokens sentencepiece --vocab-size 300 " + quick_lm + "--overwrite --save '" +
              model + "'")
              .exit_code == 0);
  CHECK(run("lm eval --whole --load '" + model + "' '" + other + "'").exit_code == 0);  // as bytes
  check_usage_error("lm train --tokens words", "'words'", "chars, bytes, sentencepiece");
  check_usage_error("lm train --vocab-size 263", "--vocab-size", "from 264 to");
  check_usage_error("lm train --resume x --tokens bytes", "--resume", "--tokens");
}
