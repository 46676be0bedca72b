// Chapter 9. `orrery lm train`: trains a GPT on a text, from its options to its last line.
#include <unistd.h>

#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/terminal.h"
#include "apps/tasks/lm/minutes.h"
#include "apps/tasks/lm/saved.h"
#include "apps/training/program.h"
#include "nn/files/files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

const std::string origin_key = "origin";        // in the metadata of FILE.resume
constexpr i64 glimpse = 60, last_sample = 300;  // tokens shown at each estimate, and at the end

// A text on one line: new lines and control characters are shown as symbols.
std::string line_of(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "\u21b5" : std::string(1, c);
  return harmless(line);
}

// What `written` makes of a sample of the model. If sampling fails, the training continues, and nothing else is lost.
std::string written_by(const LmTask& task, i64 tokens, const std::function<std::string(const std::string&)>& written) {
  try {
    return written(task.sample(tokens));
  } catch (const Error& error) { return std::string("it cannot write: ") + error.what(); }
}

std::string glimpse_of(const LmTask& task) {
  return "  " + task.as_bits(task.last_estimate()) + "\n  " +
         written_by(task, glimpse, [](const std::string& text) { return "it writes: " + line_of(text); });
}

// The texts to learn, as messages call them.
std::vector<NamedFile> named(const TextFiles& texts) {
  std::vector<NamedFile> files;
  for (const std::string& text : texts.all()) files.push_back({"the text to learn,", text});
  return files;
}

// "text one.txt: 900 characters of 65 kinds, and 100 to validate with"
void print_text(const TextFiles& texts, const TextData& data) {
  const Tokenizer& tokenizer = data.tokenizer;
  std::cerr << (texts.training.size() == 1 ? "text " : "texts ") << harmless(listed(texts.training)) << ": "
            << data.training.count() << ' ' << tokenizer.name();
  if (tokenizer.kind() != TokenKind::bytes) std::cerr << " of " << tokenizer.size() << " kinds";
  std::cerr << ", and " << data.validation.count();
  if (!texts.validation.empty()) std::cerr << " of " << harmless(texts.validation);
  std::cerr << " to validate with\n";
}

TextData data_of(const TextFiles& texts, const Tokenizer& tokenizer, i64 block) {
  const Phase phase("cutting " + listed(texts.training) + " into tokens");
  const FileText text = read_tokens(texts.training, tokenizer);
  const std::string& validation = texts.validation;
  if (validation.empty())
    return within("read " + listed(texts.training), [&] { return split(text, tokenizer, block); });
  const FileText judged = read_tokens({validation}, tokenizer);
  return within("read " + listed(texts.all()), [&] { return joined(text, judged, tokenizer, block); });
}

// A vocabulary of SentencePiece may take minutes.
Tokenizer new_tokenizer(const TextFiles& texts, TokenKind kind, i64 vocabulary_size) {
  const Phase phase(kind == TokenKind::sentencepiece
                        ? "SentencePiece learns at most " + std::to_string(vocabulary_size) + " tokens"
                        : "looking for the characters of " + listed(texts.all()));
  return tokenizer_of(texts, kind, vocabulary_size);
}

// The tokens that a file says; nothing if it says none.
std::optional<Tokenizer> tokenizer_in(const std::string& path, const Metadata& metadata) {
  if (!Tokenizer::is_in(metadata)) return std::nullopt;
  return within("load " + path, [&] { return Tokenizer::of_metadata(metadata); });
}

u32 told_checksum(const std::vector<std::string>& paths) {
  if (paths.empty()) return 0;
  const Phase phase("reading " + listed(paths));
  return checksum_of(paths);
}

// `orrery lm train`, and all that its options say.
class LmProgram final : public TrainingProgram {
 public:
  std::string program() const override { return "lm"; }
  std::string command() const override { return "orrery lm train"; }
  LmRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  void add_other_options(CLI::App& command, const RunOptionHandles& handles) override;
  void settle() override;
  void check_given() const override;
  std::vector<NamedFile> texts() const override { return named(all_texts()); }
  void read(const UnfinishedTraining* unfinished) override;
  void choose() override;
  Task& build() override;
  void announce() override { print_text(all_texts(), *data_); }

  Metadata of_model() const override;
  Metadata of_training() const override;
  std::string sample() override { return glimpse_of(*task_); }
  double seconds_afterwards(double seconds_of_step) override;
  Score report(Trainer& trainer) override;

 private:
  void add_model_options(CLI::App& command);
  void check_same(const UnfinishedTraining& unfinished) const;
  // The texts that are learned; without any that is given, the one that comes with the program.
  TextFiles all_texts() const;

  LmRecipe recipe_;
  std::string preset_ = "nanogpt";
  TextFiles given_;
  TokenKind tokens_ = TokenKind::chars;
  i64 vocabulary_size_ = 4096;
  bool untied_ = false;
  double minutes_ = 0;                               // of --minutes; 0: not given
  std::vector<CLI::Option*> minutes_choose_;         // these options
  u32 text_checksum_ = 0, validation_checksum_ = 0;  // of the bytes; 0 without a file to validate with
  std::optional<TextData> data_;
  std::optional<LmTask> task_;
};

void LmProgram::add_model_options(CLI::App& command) {
  nn::GptConfig& model = recipe_.model;
  begin_group(command, "Model");
  // Added before the others, which change the preset: options take effect in the order in which they are added.
  add_choice(command, "--preset", preset_, nn::gpt_preset_names(),
             "A model by its name, with the text's own vocabulary; other options change it",
             [&model](const std::string& name) { model = nn::gpt_preset(name); });
  add_whole_number(command, "--block", model.max_len, 1, 65536, "Tokens that the model sees at once");
  add_whole_number(command, "--layers", model.num_layers, 1, 96, "Layers");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_switch(command, "bias", model.layer.bias, "Biases in linear maps and norms");
  add_flag(command, "--rotary", model.rotary,
           "Turn queries and keys by angles of their positions, besides the position embedding");
  add_flag(command, "--query-key-norm", model.query_key_norm,
           "Scores are cosines of queries and keys, times a learned number");
  add_flag(command, "--untied", untied_, "A matrix of its own for the head, instead of the embedding's");
}

void LmProgram::add_options(CLI::App& command) {
  CLI::Option* text = add_files(command, "FILE", given_.training,
                                "Text to learn, UTF-8; several files are one text; without any, tinyshakespeare");
  begin_group(command, "Text");
  CLI::Option* validation =
      add_file(command, "--valid", given_.validation,
               "Text to validate with; if not given, the last tenth of the text is held out, a million tokens at most");
  text_options = {text, validation};
  add_choice(command, "--tokens", tokens_,
             "What a token is: a character, a byte (for files that are not UTF-8), or a piece of a word");
  add_whole_number(command, "--vocab-size", vocabulary_size_, 264, largest_vocabulary,
                   "The most tokens that sentencepiece may find, the 256 bytes among them");
  minutes_choose_ = added_by(command, [&] {
    add_model_options(command);
    begin_group(command, training_group);
    add_whole_number(command, "--batch", recipe_.batch, 1, 65536, "Blocks in a batch");
    add_flag(command, "--replacement", recipe_.replacement,
             "Draw each block from anywhere in the text, instead of each block once per epoch");
    add_recipe_options(command, recipe_, {.warmup = "a twentieth of all, 100 at most"});
    begin_group(command, evaluation_group);
    add_whole_number(command, "--estimate-batches", recipe_.estimate_batches, 1, 1000000,
                     "Batches of an evaluation, which estimates the loss on the text for validation");
  });
  std::erase_if(minutes_choose_, [](const CLI::Option* option) { return typed_name(option) == "--seed"; });
}

void LmProgram::add_other_options(CLI::App& command, const RunOptionHandles& handles) {
  begin_group(command, training_group);
  CLI::Option* minutes =
      add_number(command, "--minutes", minutes_, 0.1, 1e6,
                 "Choose model, batch, rates and steps so that all is done in this many minutes on this machine, and "
                 "print the command that trains the same again");
  show_default(minutes, "");
  exclude(minutes, minutes_choose_);
  exclude(minutes, {handles.resume, handles.print_config});
}

void LmProgram::settle() {
  const nn::LayerOptions& layer = recipe_.model.layer;
  recipe_.model.tied = !untied_;
  recipe_ = recipe_.resolved();
  if (layer.d_model % layer.num_heads != 0)
    usage_error("--heads",
                std::to_string(layer.num_heads) + " does not divide --d-model, " + std::to_string(layer.d_model));
  const i64 width = layer.d_model / layer.num_heads;
  if (recipe_.model.rotary && width % 2 != 0)
    usage_error("--rotary", "needs heads of an even width: --d-model / --heads is " + std::to_string(width));
  check_recipe_options(recipe_);
  for (std::string& path : given_.training) path = absolute_path(path);
  given_.validation = absolute_path(given_.validation);
}

TextFiles LmProgram::all_texts() const {
  TextFiles texts{.training = text_paths(given_.training), .validation = given_.validation};
  for (std::string& path : texts.training) path = absolute_path(path);
  return texts;
}

void LmProgram::check_given() const {
  constexpr size_t most_texts = 5000;  // a model, its state and its log keep their names as JSON, which has limits
  const size_t texts = all_texts().training.size();
  check(texts <= most_texts && run.chosen().size() <= most_json_bytes / 2, "lm", texts,
        " files of text are too many for the list that a model keeps; join some, as with cat");
}

// Error: these are not the texts that the training began with.
void LmProgram::check_same(const UnfinishedTraining& unfinished) const {
  const std::string& kept = entry_of(unfinished, "lm", origin_key);
  std::string validation;
  u32 text_checksum = 0, validation_checksum = 0;
  within("load " + unfinished.path, [&] {
    const Json json = parse_json_object(kept, "lm origin");
    nn::config_json::Reader read("lm origin", json, nn::config_json::Fields::all);
    std::vector<std::string> texts;
    read("texts", texts);
    read("validation", validation);
    read("text_checksum", text_checksum, 0, std::numeric_limits<u32>::max());
    read("validation_checksum", validation_checksum, 0, std::numeric_limits<u32>::max());
    read.check_all_known();
  });
  check(given_.validation.empty() || !validation.empty(), "lm", "--valid: this training holds a part of its text out");
  const auto check_text = [](const std::vector<std::string>& paths, u32 now, u32 then) {
    check(now == then, "lm", listed(paths), " is not the text that this training began with");
  };
  check_text(all_texts().training, text_checksum_, text_checksum);
  check_text({given_.validation}, validation_checksum_, validation_checksum);
}

void LmProgram::read(const UnfinishedTraining* unfinished) {
  const TextFiles texts = all_texts();
  text_checksum_ = told_checksum(texts.training);
  if (!texts.validation.empty()) validation_checksum_ = told_checksum({texts.validation});
  if (unfinished) check_same(*unfinished);
  const std::optional<Tokenizer> kept = unfinished ? tokenizer_in(unfinished->path, unfinished->metadata)
                                        : run.init.empty()
                                            ? std::nullopt
                                            : tokenizer_in(run.init, read_safetensors_metadata(run.init));
  if (unfinished) check(kept.has_value(), "lm", unfinished->path, " does not say what its tokens are");
  const Tokenizer tokenizer = kept ? *kept : new_tokenizer(texts, tokens_, vocabulary_size_);
  if (unfinished) {
    nn::GptConfig model = recipe_.model;
    model.vocab_size = tokenizer.size();
    nn::check_size(model.parameter_count(), unfinished->path);
  }
  data_ = data_of(texts, tokenizer, recipe_.model.max_len);
}

// What --minutes chooses.
void LmProgram::choose() {
  if (minutes_ == 0) return;
  const double left = 60 * minutes_ - watch.seconds();
  check(left > 0, "lm", "--minutes leaves no time to train: reading the text took ", std::llround(watch.seconds()),
        " s");
  const Choice choice = [&] {
    const Phase phase("timing a few steps");
    return choose_for(left, *data_, recipe_, [&](const LmRecipe& tried) { return measured_step(tried, *data_); });
  }();
  std::cerr << "chosen: " << choice.text() << '\n';
  recipe_ = choice.recipe;
  afterwards = choice.afterwards;
  deadline.emplace(60 * minutes_ + choice.slept - choice.afterwards, [watch = watch] { return watch.seconds(); });
}

Task& LmProgram::build() {
  nn::GptConfig model = recipe_.model;
  model.vocab_size = data_->tokenizer.size();
  check_parameters_fit("lm", model.parameter_count());
  return task_.emplace(recipe_, *data_);
}

Metadata LmProgram::of_model() const {
  Metadata metadata = data_->tokenizer.metadata();
  metadata[std::string(nn::config_key)] = nn::to_json(task_->model.config);
  return metadata;
}

Metadata LmProgram::of_training() const {
  const TextFiles texts = all_texts();
  Metadata metadata = of_model();
  metadata[origin_key] = json_text({{"texts", texts.training},
                                    {"validation", texts.validation},
                                    {"text_checksum", text_checksum_},
                                    {"validation_checksum", validation_checksum_}});
  return metadata;
}

// The loss over the whole validation text takes a forward pass of it, and backward takes twice as long as forward.
double LmProgram::seconds_afterwards(double seconds_of_step) {
  const double of_token =
      seconds_of_step / 3 / static_cast<double>(recipe_.batch * recipe_.model.max_len * recipe_.micro_batches);
  return of_token * static_cast<double>(data_->validation.count());
}

// Prints a sample of the model and its losses, after a training that has ended or was stopped.
Score LmProgram::report(Trainer& trainer) {
  const std::string hash = trainer.hash();
  const double loss = [&] {
    const Phase phase("computing the loss over the whole text for validation");
    return end_with_better(trainer, *task_);
  }();
  std::cout << written_by(*task_, last_sample, [](const std::string& text) { return for_reader(text, STDOUT_FILENO); })
            << '\n';
  if (run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss;
  if (trainer.best_step() > 0)
    std::cout << " (best estimate " << trainer.best_score() << " at step " << trainer.best_step() << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s, " << task_->as_bits(loss) << std::endl;
  return {"validation loss", loss};
}

}  // namespace

void add_lm_train(CLI::App& lm, int& exit_code) {
  add_training(lm, exit_code, std::make_shared<LmProgram>(), "train",
               "Learn a text; the defaults are nanoGPT's recipe for a CPU, with shuffled blocks and an averaged model",
               "Examples:\n  orrery lm train --save shakespeare.safetensors --seed 3\n"
               "  orrery lm train one.txt two.txt --tokens sentencepiece --save own.safetensors\n"
               "  orrery lm train --resume shakespeare.safetensors");
}

}  // namespace orrery
