// Chapter 9. Tests of `orrery inspect`, of files of ours and of others, whole and broken: widths, hostile text, the
// state of a training.
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/show/inspect/file_report.h"
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "core/utf8.h"
#include "nn/models/transformer.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using namespace orrery;

namespace {

const std::string inspect_program = quoted_program + "inspect ";

}  // namespace

TEST_CASE("a model of `orrery lm` is shown with its tensors, configuration and alphabet") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abc ", 100)), model = folder / "model",
                    json = folder / "report.json";
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--save '" + model + "'").exit_code == 0);
  const Result result = run("inspect '" + model + "' --json '" + json + "'");
  CHECK(result.exit_code == 0);
  CHECK(contains(line(result.text, 0), model + ": a safetensors file of "));
  CHECK(contains(result.text, "\nall checksums are right\n"));
  CHECK(contains(result.text, "vocab_size 4, d_model 8, "));
  CHECK(contains(result.text, "\n  alphabet: ' abc'\n"));
  CHECK(contains(result.text, "\nwte.weight "));
  CHECK_FALSE(contains(result.text, "state of the training"));
  const auto report = nlohmann::json::parse(orrery::contents(json));
  CHECK(report.at("parameters") == 4 * 8 + 8 * 8 + 8 * 24 + 8 * 8 + 2 * 8 * 8 + 3 * 8);  // tied, without biases
  CHECK(report.at("damaged") == 0);
  CHECK(report.at("training").is_null());
  CHECK(report.at("tensors").size() == 9);
}

TEST_CASE("an unfinished training is shown with its steps, best loss, seed, kernel, products and text") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text", repeated("abc ", 100)), model = folder / "model";
  const std::string until_kept =
      " 2>/dev/null & while [ ! -e '" + model + ".resume' ] && kill -0 $!; do sleep 0.01; done; kill -9 $!; wait $!";
  shell(quoted_program + "lm train '" + text + "' " + tiny +
        "--seed 5 --steps 100000000 --evaluate-every 100 --estimate-batches 1 --save '" + model + "'" + until_kept);
  REQUIRE(std::filesystem::exists(model + ".resume"));
  const Result result = run("inspect '" + model + ".resume'");
  CHECK(result.exit_code == 0);
  CHECK(contains(result.text, "\nstate of the training\n  steps done "));
  CHECK(contains(result.text, " of 100000000\n"));
  for (const std::string part :
       {"  best loss ", "  seed                   5\n", "  kernel ", "  products               own\n"})
    CHECK(contains(result.text, part));
  CHECK(contains(result.text, "  origin: texts "));
  CHECK(contains(result.text, "\nparameter.wte.weight "));
}

TEST_CASE("damage is shown tensor by tensor, and is a failure") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "a";
  orrery::write_safetensors(path, {{"good", orrery::zeros({3})}, {"hurt", orrery::zeros({2})}});
  orrery::flip_bit(path, 8 * orrery::contents(path).size() - 1);
  const Result result = run("inspect '" + path + "'");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "1 of 2 checksums are wrong: the file is damaged\n"));
  CHECK(line(result.text, -2).starts_with("good "));
  CHECK_FALSE(contains(line(result.text, -2), "DAMAGED"));
  CHECK(line(result.text, -1).starts_with("hurt "));
  CHECK(contains(line(result.text, -1), "  DAMAGED"));
  CHECK(errors("inspect '" + path + "'").text ==
        "orrery: inspect: " + path + ": 1 of 2 tensors is damaged; the first is 'hurt'\n");
}

TEST_CASE("any other file is refused in one line that says so") {
  const orrery::TemporaryFolder folder;
  const std::string path = folder / "a", quoted = "'" + path + "'";
  check_failure(inspect_program + quoted, "read " + path + ": No such file or directory");
  check_failure(inspect_program + "'" + folder.path().string() + "'",
                folder.path().string() + "/model.safetensors: No such file or directory");
  check_failure(inspect_program + "/dev/null", "read /dev/null: is not a regular file");
  written(path, "");
  check_failure(inspect_program + quoted, "is not a safetensors file: it has only 0 bytes");
  written(path, "PK\x03\x04" + repeated("x", 100));
  check_failure(inspect_program + quoted, "is not a safetensors file: it is a ZIP archive, such as torch.save writes");
  orrery::write_safetensors(path, {{"w", orrery::zeros({100})}});
  const std::string whole = orrery::contents(path);
  for (const size_t length : {size_t{20}, whole.size() - 1}) {
    written(path, whole.substr(0, length));
    check_failure(inspect_program + quoted, "read " + path + ": ");
  }
  check_usage_error("inspect", "FILE", "required");
  check_usage_error("inspect a b", "'b'", "orrery inspect --help");
}

namespace {

TensorSummary summary_of(const std::string& name, FileDtype dtype, const Shape& shape, u64 begin = 0) {
  const u64 bytes = static_cast<u64>(shape.count() * bits_of(dtype)) / 8;
  return {{.name = name, .dtype = dtype, .shape = shape, .begin = begin, .end = begin + bytes}, "0123abcd", ""};
}

std::string printed(const FileSummary& file) {
  std::ostringstream out;
  print_file(out, "file", file);
  return out.str();
}

size_t columns_in(std::string_view line) {
  size_t columns = 0;
  for (; !line.empty(); ++columns) line.remove_prefix(std::max<size_t>(1, first_character(line).bytes));
  return columns;
}

size_t widest(const std::string& text) {
  std::istringstream lines(text);
  size_t width = 0;
  for (std::string line; std::getline(lines, line);) width = std::max(width, columns_in(line));
  return width;
}

}  // namespace

TEST_CASE("the table keeps to 100 columns; long names lose their middle") {
  std::string name = "encoder.";
  for (int i = 0; i < 40; ++i) name += "layers.\xC3\xA9.";
  name += "weight";
  const Shape wide{100000, 100000, 100000, 100000, 1, 1};
  FileSummary file{.bytes = 1, .header_bytes = 1, .tensors = {}, .metadata = {}};
  file.tensors.push_back(
      {{.name = name, .dtype = FileDtype::F8_E4M3FNUZ, .shape = wide, .begin = 0, .end = u64{1} << 61},
       "0123abcd",
       "ffffffff"});
  const std::string text = printed(file);
  CHECK(widest(text) <= 100);
  CHECK(widest(text) > 90);
  CHECK(contains(text, "\nencoder.l"));
  CHECK(contains(text, ".weight  [100000"));
  CHECK(contains(text, "  DAMAGED\n"));
}

TEST_CASE("text of others is harmless, shortened and inside the columns") {
  const std::string bad = "a\x1B[31m\nb\xC2\x9B\xE2\x80\xAE";
  FileSummary file{.bytes = 1, .header_bytes = 1, .tensors = {summary_of(bad, FileDtype::I8, {1})}, .metadata = {}};
  file.metadata = {{bad, bad},
                   {"long", std::string(5000, 'x')},
                   {"nested", R"({"steps_done": )" + std::string(100'000, '[')},
                   {"object", R"({"deep": {"a": [1, 2]}, "text": "\u001b[31m"})"}};
  for (int i = 0; i < 100; ++i) file.metadata["z" + std::to_string(i)] = "";
  const std::string text = printed(file);
  CHECK(contains(text,
                 "  a?[31m\\nb"
                 "??: 'a?[31m\\nb?"
                 "?'\n"));
  CHECK(contains(text, "... (5000 bytes)'\n"));
  CHECK(contains(text, "  object: deep {\"a\":[1,2]}, text ?[31m\n"));
  CHECK(contains(text, "  ... and 64 more\n"));
  CHECK_FALSE(contains(text, "\x1B"));
  CHECK_FALSE(contains(text, "state of the training"));
  CHECK(widest(text) <= 100);
  const std::string json = file_as_json(bad + "\xFF", file);
  for (const char c : json) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  CHECK(nlohmann::json::parse(json).at("tensors").at(0).at("name") == bad);
}

TEST_CASE("the state of a training is found by its fields, whatever the metadata are called") {
  FileSummary file{.bytes = 1,
                   .header_bytes = 1,
                   .tensors = {summary_of("parameter.w", FileDtype::F32, {5}), summary_of("m.w", FileDtype::F32, {5})},
                   .metadata = {{"plan", R"({"steps": 2000, "rate": 0.1})"},
                                {"now", R"({"steps_done": 1250, "seed": 3, "text": "/a/b", "best_step": 1000,
                                            "best_loss": 1.9012345, "text_checksum": 7})"}}};
  const std::string text = printed(file);
  CHECK(contains(text, "\na model of 5 parameters\n"));
  CHECK(contains(text,
                 "\nstate of the training\n"
                 "  steps done             1250 of 2000\n"
                 "  best loss              1.90123 at step 1000\n"
                 "  seed                   3\n"
                 "  text                   /a/b\n"
                 "  text checksum          7\n"));
  CHECK(contains(text, "\n  plan: steps 2000, rate 0.1\n"));
  CHECK_FALSE(contains(text, "now:"));
  const auto training = nlohmann::json::parse(file_as_json("file", file)).at("training");
  CHECK(training.at("steps_done") == 1250);
  CHECK(training.at("steps") == 2000);
  file.metadata["now"] = R"({"steps_done": 0, "best_loss": null})";
  CHECK(contains(printed(file), "  best loss              none yet\n"));
  file.metadata["now"] = R"({"steps_done": {"a": [true]}, "best_loss": "x", "best_step": -1})";
  CHECK(contains(printed(file), "  steps done             {\"a\":[true]} of 2000\n"));
  file.metadata.clear();
  CHECK_FALSE(training_in(file.metadata));
  CHECK_FALSE(parameters_in(file));
}

TEST_CASE("a file with any byte changed is reported or refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  const std::string header = R"({"__metadata__":{"now":"{\"steps_done\":1,\"steps\":2}"},"a":{"dtype":"F16",)"
                             R"("shape":[2,1],"data_offsets":[0,4]}})";
  const std::string whole = std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "1234";
  set_contents(path, whole);
  CHECK(contains(printed(summarise_safetensors(path)), "  steps done             1 of 2\n"));
  int reported = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char by : {'\0', '"', '}', '9', '\x1B', '\xFF'}) {
      std::string changed = whole;
      changed[at] = by;
      set_contents(path, changed);
      try {
        const std::string text = printed(summarise_safetensors(path));
        CHECK(widest(text) <= 100);
        CHECK_FALSE(contains(text, "\x1B"));
        ++reported;
      } catch (const Error&) { ++refused; }
    }
  }
  CHECK(reported > 50);
  CHECK(refused > 100);
}

TEST_CASE("parameters are counted as the configuration says, where tied ones stand once") {
  nn::TransformerConfig config = nn::tiny(100);
  FileSummary file{.bytes = 1, .header_bytes = 1, .tensors = {}, .metadata = {{"config", nn::to_json(config)}}};
  CHECK(parameters_in(file) == config.parameter_count());
  const translate::RecurrentTranslatorConfig recurrent{.src_vocab_size = 20, .tgt_vocab_size = 30};
  file.metadata["config"] = to_json(recurrent);
  CHECK(parameters_in(file) == recurrent.parameter_count());
  const translate::ConvolutionalTranslatorConfig convolutional{.src_vocab_size = 20, .tgt_vocab_size = 30};
  file.metadata["config"] = to_json(convolutional);
  CHECK(parameters_in(file) == convolutional.parameter_count());
  file.metadata["config"] = R"({"hidden_size": 5})";
  CHECK_FALSE(parameters_in(file));
  file.metadata["config"] = "no JSON";
  CHECK_FALSE(parameters_in(file));
}
