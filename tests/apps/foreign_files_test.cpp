// Chapter 9. Files of others, and what the program says of them: one line that names the file and commands no terminal.
#include "core/files/safetensors.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using orrery::Metadata;

namespace {

// 120 KB that no stack of calls can hold.
const std::string& deep() {
  static const std::string text = R"({"d_model":)" + repeated("[", 60'000) + repeated("]", 60'000) + "}";
  return text;
}

// The file of a model with one piece of metadata replaced.
std::string with_metadata(const std::string& from, const std::string& to, const std::string& key,
                          const std::string& value) {
  const orrery::TensorFile file = orrery::read_safetensors(from);
  Metadata metadata = file.metadata;
  REQUIRE(metadata.contains(key));
  metadata[key] = value;
  orrery::write_safetensors(to, file.tensors, metadata);
  return to;
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

}  // namespace

TEST_CASE("JSON that nests 60,000 times is refused in one line, wherever a program reads it") {
  const orrery::TemporaryFolder folder;
  const std::string toy = folder / "toy.safetensors", lm = folder / "lm.safetensors",
                    text = written(folder / "text", repeated("ab ", 200)), hostile = folder / "hostile";
  REQUIRE(run(quick_toy + "--save '" + toy + "'").exit_code == 0);
  const std::string line = "load " + hostile + ": ", refused = ": has more than 32 nested lists and objects";
  for (const std::string key : {"config", "toy_task"}) {
    with_metadata(toy, hostile, key, deep());
    check_failure(quoted_program + "toy --load '" + hostile + "' < /dev/null", refused);
  }
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + lm + "'").exit_code == 0);
  with_metadata(lm, hostile, "config", deep());
  check_failure(quoted_program + "lm sample --load '" + hostile + "'", line);
  check_failure(quoted_program + "lm sample --load '" + hostile + "'", refused);
  CHECK(contains(errors("leakcheck --load '" + hostile + "'").text, "read " + hostile + ": config" + refused));
  written(hostile, deep());
  for (const std::string picture : {"attention", "speed"})
    check_failure(quoted_program + "figure " + picture + " --data '" + hostile + "'",
                  "read " + hostile + ": figure" + refused);
}

TEST_CASE("JSON that nests 60,000 times in the state of an unfinished training is refused in one line") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("ab ", 200)), model = folder / "model",
                    state = folder / "model.resume", kept = folder / "kept";
  // A training that is interrupted leaves its state behind.
  const Result stopped = shell("timeout -s INT 1 " + quoted_program + "lm train '" + text + "' " + tiny +
                               "--steps 100000000 --save '" + model + "' 2>/dev/null");
  REQUIRE(stopped.exit_code != 0);
  REQUIRE(std::filesystem::exists(state));
  std::filesystem::rename(state, kept);
  for (const std::string key : {"recipe", "standing", "options"}) {
    CAPTURE(key);
    with_metadata(kept, state, key, deep());
    check_failure(quoted_program + "lm train --resume '" + model + "'", ": has more than 32 nested lists and objects");
  }
  const std::string origin = orrery::read_safetensors_metadata(kept).at("origin");
  with_metadata(kept, state, "origin", replaced(origin, "{", "{\"colour\":1,"));
  check_failure(quoted_program + "lm train --resume '" + model + "'", "load " + state + ": training origin: ");
}

TEST_CASE("an error in a prompt or in metadata names the option or the file") {
  const orrery::TemporaryFolder folder;
  const std::string lm = folder / "lm", changed = folder / "changed",
                    text = written(folder / "text", repeated("ab ", 200));
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + lm + "'").exit_code == 0);
  check_failure(quoted_program + "lm sample --load '" + lm + "' --prompt x", "--prompt: text: character 1, 'x'");
  with_metadata(lm, changed, "alphabet", "ab");
  check_failure(quoted_program + "lm sample --load '" + changed + "'",
                changed + " holds a model of 3 tokens and a list of 2");
}

TEST_CASE("foreign names and words send no commands to a terminal, and start no new lines") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("ab ", 200)), lm = folder / "lm";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + lm + "'").exit_code == 0);
  // An escape sequence, a line of its own, C1's sequence introducer, a reversal of direction, a byte of no character.
  const std::string bad =
                        "a\x1B[31m\norrery: \xC2\x9B\xE2\x80\xAE\xFF"
                        "b",
                    shown = "a?[31m\\norrery: ???b";
  const std::string file = "'" + (folder / bad) + "'";
  check_failure(quoted_program + "lm eval --load '" + lm + "' " + file, shown + ": No such file");
  check_failure(quoted_program + "lm sample --load " + file, shown + ": No such file");
  check_failure(quoted_program + "toy --load " + file, shown + ": No such file");
  check_failure(quoted_program + "lm sample --load '" + lm + "' --prompt 'ab\x1B'", "character 3, '?', is not one");
  check_failure(quoted_program + "lm sample --load '" + lm + "' --prompt 'ab\n'", "character 3, '\\n', is not one");
  written(folder / bad, repeated("ab ", 200));
  CHECK(contains(errors("lm eval --load '" + lm + "' " + file).text, shown + " in "));
  CHECK(contains(errors("lm train " + quick_lm + file).text, shown + ": 540 characters"));
  const std::string model = "'" + (folder / (bad + "model")) + "'";
  std::filesystem::copy_file(lm, folder / (bad + "model"));
  const Result checked = run("leakcheck --threads 1 --load " + model, "2>&1");
  CHECK(checked.exit_code == 0);
  CHECK(contains(checked.text, shown + "model: which ids"));
  CHECK_FALSE(contains(checked.text, "\x1B"));
  const std::string picture = written(folder / "picture", R"({"task": "a\u001b[31m", "layer": 0, "head": 0,
      "written": ["\u009b"], "read": ["\u001b"], "weights": [[1]]})");
  const Result drawn = run("figure attention --data '" + picture + "'");
  CHECK(drawn.exit_code == 0);
  CHECK(contains(drawn.text, "task: a?[31m; "));
  CHECK_FALSE(contains(drawn.text, "\x1B"));
  CHECK_FALSE(contains(drawn.text, "\xC2\x9B"));
  for (const std::string& arguments : {"toy --task " + file, "lm train --preset " + file, "gradcheck " + file}) {
    check_usage_error(arguments, "a?[31m; ", "; orrery: ???b");  // a usage error joins its lines with semicolons
    CHECK_FALSE(contains(errors(arguments).text, "\x1B"));
  }
}

TEST_CASE("what a training says before its first step commands no terminal") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "a\x1B[31mb", repeated("ab ", 200));
  const std::string train = quoted_program + "lm train '" + text + "' " + quick_lm;
  const Result shown = shell("TERM=xterm NO_COLOR=1 script -qec \"" + train + "\" /dev/null </dev/null");
  CHECK(shown.exit_code == 0);
  CHECK(contains(shown.text, "reading " + (folder / "a?[31mb") + " ..."));
  CHECK_FALSE(contains(shown.text, "\x1B"));  // NO_COLOR also keeps the line that is drawn again free of them
}

TEST_CASE("what a model writes commands no terminal, and is unchanged in a pipe") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("\x1B\x07 ", 200)), lm = folder / "lm";
  const auto both = [](const std::string& arguments) {
    const std::string command = quoted_program + arguments + " 2>/dev/null";
    const Result pipe = shell(command), terminal = shell("script -qec \"" + command + "\" /dev/null </dev/null");
    CHECK(pipe.exit_code == 0);
    CHECK(terminal.exit_code == 0);
    CHECK(pipe.text.find_first_of("\x1B\x07") != std::string::npos);
    CHECK(terminal.text.find_first_of("\x1B\x07") == std::string::npos);
    CHECK(contains(terminal.text, "?"));
  };
  both("lm train '" + text + "' " + quick_lm + "--overwrite --save '" + lm + "'");
  both("lm sample --tokens 100 --load '" + lm + "'");
}
