// Chapter 9. `orrery lm`: trains a GPT on a text, from its options to its last line; and its other sub-commands.
//
//   orrery lm train --save shakespeare.safetensors
//   orrery lm sample --load shakespeare.safetensors --prompt ROMEO:
//   orrery lm eval --load shakespeare.safetensors
//   orrery lm export --load shakespeare.safetensors --save for-transformers/
//   orrery lm train --tokens sentencepiece one.txt two.txt --save own.safetensors
//   orrery lm train one.txt --init gpt2/ --save tuned.safetensors
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/program/command.h"
#include "apps/program/terminal.h"
#include "apps/tasks/lm/training.h"
#include "apps/training/program.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"

namespace orrery {
namespace {

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

// The texts, as messages call them.
std::vector<NamedFile> named(const TextFiles& texts) {
  std::vector<NamedFile> files;
  for (const std::string& text : texts.training) files.push_back({"the text to learn,", text});
  if (!texts.validation.empty()) files.push_back({"--valid", texts.validation});
  return files;
}

// "text one.txt: 900 characters of 65 kinds, and 100 to validate with"
void print_text(const TextFiles& texts, const TextData& data) {
  const Tokenizer& tokenizer = data.tokenizer;
  std::cerr << (texts.training.size() == 1 ? "text " : "texts ") << harmless(listed(texts.training)) << ": "
            << data.training.count() << ' ' << tokenizer.name();
  if (tokenizer.kind() != TokenKind::bytes) std::cerr << " of " << tokenizer.size() << " kinds";
  if (tokenizer.separator()) std::cerr << " with " << count_of(data.training, *tokenizer.separator()) << " separators";
  std::cerr << ", and " << data.validation.count();
  if (!texts.validation.empty()) std::cerr << " of " << harmless(texts.validation);
  std::cerr << " to validate with\n";
}

// Error: the text has none of the separators that it should have.
TextData data_of(const TextFiles& texts, const Tokenizer& tokenizer, i64 block) {
  const Phase phase("cutting " + listed(texts.training) + " into tokens");
  const FileText text = read_tokens(texts.training, tokenizer);
  const std::optional<i32> separator = tokenizer.separator();
  check(!separator || texts.training.size() > 1 || count_of(text.text, *separator) > 0, "lm", "no line of ",
        listed(texts.training), " is the separator, ", printable(separator ? tokenizer.text(*separator) : ""),
        "; a line that ends in '\\r\\n' is none");
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

// `orrery lm train`, and all that its options say.
class LmProgram final : public TrainingProgram {
 public:
  std::string program() const override { return "lm"; }
  std::string command() const override { return "orrery lm train"; }
  LmRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  // A model of --init has its own form: a preset in the file of --config gives way, and one that is typed is an error.
  void add_other_options(CLI::App&, const RunOptionHandles& handles) override {
    exclude(preset_option_, {handles.init});
  }
  void settle() override;
  void check_given() const override;
  std::vector<NamedFile> texts() const override { return named(all_texts()); }
  void read(const std::string& path, const Metadata& kept) override;
  i64 expected_parameters() const override { return recipe_.model_for(*data_).parameter_count(); }
  Task& build() override { return task_.emplace(recipe_, *data_); }
  void fit(TimeBudget& budget) override;
  void announce() override { print_text(all_texts(), *data_); }

  Metadata of_model() const override;
  std::string sample(bool) override { return glimpse_of(*task_); }
  double seconds_afterwards(double seconds_of_step) override;
  Score report(Trainer& trainer) override;

 private:
  void add_model_options(CLI::App& command);
  void use_model_of(const std::string& path);
  // The texts that are learned; without any that is given, the one that comes with the program.
  TextFiles all_texts() const;

  LmRecipe recipe_;
  std::string preset_ = "nanogpt", separator_;
  i64 block_ = recipe_.model.max_len;
  CLI::Option *preset_option_ = nullptr, *block_option_ = nullptr, *tokens_option_ = nullptr;
  std::vector<CLI::Option*> rates_;                           // the first and the last one
  std::vector<std::pair<CLI::Option*, std::string>> fields_;  // of the model, with their options
  TextFiles given_;
  TokenKind tokens_ = TokenKind::chars;
  i64 vocabulary_size_ = 4096;
  bool untied_ = false;
  std::optional<TextData> data_;
  std::optional<LmTask> task_;
};

void LmProgram::add_model_options(CLI::App& command) {
  begin_group(command, "Model");
  // Added before the others, which change the preset: options take effect in the order in which they are added.
  preset_option_ = add_choice(command, "--preset", preset_, nn::gpt_preset_names(),
                              "A model by its name, with the text's own vocabulary; other options change it",
                              [this](const std::string& name) {
                                recipe_.model = nn::gpt_preset(name);
                                block_ = recipe_.model.max_len;
                              });
  block_option_ = add_whole_number(command, "--block", block_, 1, 65536,
                                   "Tokens that the model sees at once; with --init those that it is trained on at "
                                   "once, if not given as many as it sees, at most 256");
  for (const char* field :
       {"num_layers", "num_heads", "d_model", "d_ff", "dropout", "bias", "rotary", "query_key_norm"}) {
    add_fields(command, recipe_.model, {field});
    fields_.emplace_back(options_of(command).back(), field);
  }
  fields_.emplace_back(
      add_flag(command, "--untied", untied_, "A matrix of its own for the head, instead of the embedding's"), "tied");
}

void LmProgram::add_options(CLI::App& command) {
  fitted = "batch, rates, steps and, of a new model, its size,";
  CLI::Option* text = add_files(command, "FILE", given_.training,
                                "Text to learn, UTF-8; several files are one text; without any, tinyshakespeare");
  begin_group(command, "Text");
  CLI::Option* validation =
      add_file(command, "--valid", given_.validation,
               "Text to validate with; if not given, the last tenth of the text is held out, a million tokens at most");
  text_options = {text, validation};
  tokens_option_ = add_choice(
      command, "--tokens", tokens_,
      "What a token is: a character, a byte (for files that are not UTF-8), a piece of a word, or one of the "
      "byte pairs of GPT-2, if --init names a model with these; a model of --init has its own tokens");
  add_whole_number(command, "--vocab-size", vocabulary_size_, 264, largest_vocabulary,
                   "The most tokens that sentencepiece may find, the 256 bytes among them");
  add_text(command, "--separator", separator_, "LINE",
           "A line that stands between documents, as the end of a file does: the model reads one token for it, </s> of "
           "sentencepiece or the <|endoftext|> of GPT-2; other tokens have none");
  also_fitted = added_by(command, [&] {
    add_model_options(command);
    begin_group(command, training_group);
    add_whole_number(command, "--batch", recipe_.batch, 1, 65536, "Blocks in a batch");
    add_flag(command, "--replacement", recipe_.replacement,
             "Draw each block from anywhere in the text, instead of each block once per epoch");
  });
  add_recipe_options(command, recipe_, {.warmup = "a twentieth of all, 100 at most"});
  for (CLI::Option* option : options_of(command))
    if (typed_name(option) == "--rate" || typed_name(option) == "--last-rate") rates_.push_back(option);
  begin_group(command, evaluation_group);
  also_fitted.push_back(
      add_whole_number(command, "--estimate-batches", recipe_.estimate_batches, 1, 1000000,
                       "Batches of an evaluation, which estimates the loss on the text for validation"));
}

void LmProgram::settle() {
  const nn::LayerOptions& layer = recipe_.model.layer;
  const bool starts_from_another = !run.init.empty();
  recipe_.model.tied = !untied_;
  if (starts_from_another && run.resume.empty()) use_model_of(run.init);
  recipe_.model.max_len = std::max(block_, starts_from_another ? recipe_.model.max_len : 0);
  recipe_.block = block_;
  if (starts_from_another && !is_given(rates_[0])) recipe_.rate = 5e-5;
  if (starts_from_another && !is_given(rates_[1])) recipe_.last_rate = recipe_.rate / 10;
  if (recipe_.schedule == Schedule::cosine && recipe_.last_rate > recipe_.rate)
    usage_error("--last-rate", "must be at most --rate: the cosine falls from one to the other");
  recipe_ = recipe_.resolved();
  check_heads(layer);
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

// The model has the form of the one that --init names, except what was typed.
void LmProgram::use_model_of(const std::string& path) {
  std::erase(run.deciding, preset_option_);
  constexpr i64 most_at_once = 256;
  const bool says_heads = is_given(fields_[1].first);
  const LanguageModelConfig given = nn::gpt_config(path, says_heads ? recipe_.model.layer.num_heads : 0);
  Json merged = parse_json_object(nn::to_json(given), "lm");
  const Json typed = parse_json_object(nn::to_json(recipe_.model), "lm");
  for (const auto& [option, field] : fields_) {
    if (!is_given(option)) continue;
    merged[field] = typed.at(field);
    if (field == "dropout") merged.erase("attention_dropout");  // follows it
  }
  recipe_.model = within("lm", [&] { return LanguageModelConfig::of_json(json_text(merged)); });
  if (!is_given(block_option_)) block_ = std::min(given.max_len, most_at_once);
  if (block_ > given.max_len && !recipe_.model.rotary)
    usage_error("--block",
                "must be at most the model's " + std::to_string(given.max_len) + ", the positions that it has learned");
  untied_ = !recipe_.model.tied;
}

// The tokens of a model or a training that is there already are kept.
void LmProgram::read(const std::string& path, const Metadata& kept) {
  const TextFiles texts = all_texts();
  std::optional<Tokenizer> tokenizer;
  if (!path.empty()) {
    tokenizer = tokens_of_model(kept, path);
    if (!run.resume.empty()) recipe_.model = nn::config_of<LanguageModelConfig>(kept, path);
    check(!tokenizer || tokenizer->size() == recipe_.model.vocab_size, "lm", path, " holds a model of ",
          recipe_.model.vocab_size, " tokens and a list of ", tokenizer ? tokenizer->size() : 0);
  }
  check(tokenizer || run.resume.empty(), "lm", path, " does not say what its tokens are");
  // A published model without its tokens would be tuned to others, which it never saw.
  check(
      tokenizer || path.empty() || is_given(tokens_option_), "lm", path,
      " does not say what its tokens are: GPT-2's are read from vocab.json and merges.txt beside it (a tokenizer.json "
      "is not); --tokens gives it others");
  if (!tokenizer) tokenizer = new_tokenizer(texts, tokens_, vocabulary_size_);
  if (!separator_.empty()) within("--separator", [&] { tokenizer->separate_at(separator_); });
  data_ = data_of(texts, *tokenizer, recipe_.length());
}

// The model of --init stays as it is.
void LmProgram::fit(TimeBudget& budget) {
  if (!run.init.empty()) return TrainingProgram::fit(budget);
  orrery::fit(recipe_, *data_, budget);
  block_ = recipe_.block;
}

Metadata LmProgram::of_model() const {
  Metadata metadata = data_->tokenizer.metadata();
  metadata[std::string(nn::config_key)] = nn::to_json(task_->model.config);
  return metadata;
}

// The loss over the whole validation text takes a forward pass of it, and backward takes twice as long as forward.
double LmProgram::seconds_afterwards(double seconds_of_step) {
  const double of_token = seconds_of_step / 3 /
                          static_cast<double>(recipe_.batch * recipe_.length() * recipe_.micro_batches) *
                          static_cast<double>(ranks->size());  // which share a step
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

void add_lm(CLI::App& program, int& exit_code) {
  CLI::App& lm =
      add_command(program, "lm", "A language model: train a GPT on a text, sample from it, evaluate it, export it",
                  "Example:\n  orrery lm train\nEach has its own --help.");
  add_training(lm, exit_code, std::make_shared<LmProgram>(), "train",
               "Learn a text; the defaults are nanoGPT's recipe for a CPU, with shuffled blocks and an averaged model",
               "Examples:\n  orrery lm train --save shakespeare.safetensors --seed 3\n"
               "  orrery lm train one.txt two.txt --tokens sentencepiece --save own.safetensors\n"
               "  orrery lm train one.txt --init gpt2/ --save tuned.safetensors\n"
               "  orrery lm train --resume shakespeare.safetensors");
  add_lm_sample(lm, exit_code);
  add_lm_eval(lm, exit_code);
  add_lm_export(lm, exit_code);
  needs_sub_command(lm);
}

}  // namespace orrery
