// Chapter 9. `export`: a BERT as a folder of Hugging Face's transformers.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/terminal.h"
#include "apps/tasks/label_task.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "nn/files/bert_files.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

struct ExportBert {
  std::string load, folder;
};

int export_bert(const std::string& task, nn::BertHead head, const ExportBert& options) {
  const auto in_folder = [&](const char* name) { return (std::filesystem::path(options.folder) / name).string(); };
  std::error_code absent;
  for (const char* name : {"model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"})
    check(!std::filesystem::exists(in_folder(name), absent), task, in_folder(name), " exists; name another folder");
  const SavedForm form = saved_form(task, head, options.load);
  const nn::BertConfig& config = form.config;
  check(!config.sentence_sums, task, options.load,
        " reads sentences as sums of words, which Hugging Face's BERT cannot; train with --no-sentence-sums");
  nn::Bert model = nn::load<nn::Bert>(options.load, config);
  const std::string published = within("export " + options.load, [&] { return nn::published_json(config); });
  Metadata metadata = form.tokens.metadata();
  metadata["format"] = "pt";  // without it, transformers refuses the file
  make_folder(options.folder);
  nn::save(model, in_folder("model.safetensors"), metadata);
  write_text(in_folder("config.json"), published);
  const WordPiece* const words = form.tokens.word_pieces();
  if (words) {
    const Json about{{"tokenizer_class", "BertTokenizer"},
                     {"do_lower_case", words->lower_case()},
                     {"model_max_length", config.max_positions}};
    write_text(in_folder("vocab.txt"), words->vocab_txt());
    write_text(in_folder("tokenizer_config.json"), json_text(about, 2) + "\n");
  }
  std::cout << harmless(options.folder) << " has a "
            << parse_json_object(published, task).at("architectures").at(0).get<std::string>()
            << (words ? " and its vocab.txt"
                      : ", without a tokenizer: its pieces are SentencePiece's, which only orrery reads there")
            << std::endl;
  return done;
}

}  // namespace

void add_bert_export(CLI::App& parent, int& exit_code, const std::string& task, nn::BertHead head,
                     const std::string& only) {
  auto options = std::make_shared<ExportBert>();
  CLI::App& command = add_command(
      parent, "export", "Write a model" + only + " for Hugging Face's transformers",
      "from_pretrained of the class that it names and of AutoTokenizer read the folder, and orrery does.\nExample:\n"
      "  orrery " +
          task + " export --load m/ --save for-transformers/");
  require(take_folders(add_file(command, "--load", options->load, "The model, or the folder of --save FOLDER/")));
  require(add_file(command, "--save", options->folder, "The folder, which is made if it is not there", "FOLDER"));
  when_run(command, exit_code, [task, head, options] { return export_bert(task, head, *options); });
}

}  // namespace orrery
