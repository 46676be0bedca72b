// Chapter 9. A fuzz target: configurations of models and trainings as JSON, indexes of shards, option files.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>
#include <optional>

#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/tasks/toy/task.h"
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "apps/training/recipe.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"
#include "core/files/shards.h"
#include "core/tensor_ops.h"
#include "nn/files/bert_files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"
#include "tests/core/temporary_folder.h"
#include "tests/fuzz/fuzz.h"

using namespace orrery;
using fuzz::accepted;
using fuzz::expect;

namespace {

// Reads a configuration; what is accepted can be written, and `read_again` reads it as the same.
template <class Read, class ReadAgain>
void there_and_back(const std::string& text, const Read& read, const ReadAgain& read_again) {
  std::optional<decltype(read(text))> config;
  if (!accepted([&] { config.emplace(read(text)); })) return;
  fuzz::expect_accepted(
      [&] {
        const std::string once = to_json(*config);
        return to_json(read_again(once)) == once;
      },
      "a configuration that is written and read again is the same");
}
template <class Read> void there_and_back(const std::string& text, const Read& read) {
  there_and_back(text, read, read);
}

// Options of every kind, as a command has them.
void read_options(const std::string& path) {
  CLI::App app;
  bool flag = false, on = false;
  i64 whole = 1;
  double number = 1;
  std::string config, text = "a", choice = "b";
  std::vector<std::string> files;
  std::vector<CLI::Option*> for_models;
  add_config(app, config, for_models);
  add_choice(app, "--choice", choice, {"a", "b"}, "");
  add_whole_number(app, "--whole", whole, 0, 9, "");
  add_number(app, "--number", number, 0, 1, "");
  add_text(app, "--text", text, "TEXT", "");
  add_flag(app, "--flag", flag, "");
  add_switch(app, "on", on, "");
  add_files(app, "FILES", files, "");
  for_models = options_of(app);
  add_file(app, "--save", text, "");
  try {
    app.parse(std::vector<std::string>{path, "--config"});  // CLI11 takes them in reverse
    values_of(options_of(app));
  } catch (const CLI::Error&) {}  // wrong usage
}

const std::string& option_file() {
  static const TemporaryFolder folder;
  static const std::string path = folder / "options.json";
  return path;
}

// An index beside two shards. Only these are ever read.
void read_index(const std::string& text) {
  static const TemporaryFolder folder;
  static const TensorMap first{{"x", zeros({2})}}, second{{"y", zeros({3})}, {"z", zeros({1})}};
  static const bool written = [] {
    write_safetensors(folder / "a", first);
    write_safetensors(folder / "b", second, {{"w", "z"}});
    return true;
  }();
  const std::string index = folder / "m.index.json";
  set_contents(index, text);
  accepted([&] {
    for (const Shard& shard : model_files(index).shards)
      expect(shard.path.substr(0, shard.path.rfind('/')) == folder.path().string(), "a shard is beside its index");
    const TensorFile file = read_safetensors(index);
    TensorMap all = file.metadata.contains("w") ? second : TensorMap();
    if (file.tensors.contains("x")) all.insert(first.begin(), first.end());
    expect(written && file.tensors.size() == all.size(), "shards are read whole");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const std::string& text = input.text;
  switch (input.choice % 10) {
    case 0:
      accepted([&] { json_text(parse_json_object(text, "fuzz")); });
      read_index(text);
      break;
    case 1: there_and_back(text, [](const std::string& t) { return nn::GptConfig::of_json(t); }); break;
    case 2:  // it is written as a configuration of ours
      there_and_back(
          text, [](const std::string& t) { return nn::published_gpt_config(t, "fuzz"); },
          [](const std::string& t) { return nn::GptConfig::of_json(t); });
      break;
    case 3: there_and_back(text, [](const std::string& t) { return nn::TransformerConfig::of_json(t); }); break;
    case 4:
      there_and_back(text, [](const std::string& t) { return translate::RecurrentTranslatorConfig::of_json(t); });
      break;
    case 5:
      there_and_back(text, [](const std::string& t) { return translate::ConvolutionalTranslatorConfig::of_json(t); });
      break;
    case 6: there_and_back(text, [](const std::string& t) { return training_recipe(t); }); break;
    case 7: there_and_back(text, [](const std::string& t) { return toy_task(t); }); break;
    case 8:
      there_and_back(text, [](const std::string& t) { return nn::BertConfig::of_json(t); });
      there_and_back(  // it is written as a configuration of ours
          text, [](const std::string& t) { return nn::published_bert_config(t, "fuzz"); },
          [](const std::string& t) { return nn::BertConfig::of_json(t); });
      break;
    default: set_contents(option_file(), text); accepted([&] { read_options(option_file()); });
  }
  return 0;
}
