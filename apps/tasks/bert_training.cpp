// Chapter 9. Training a BERT: its options, its tokens, how many steps it makes; `export`: a BERT as a folder of Hugging
// Face's transformers.
#include "apps/tasks/bert_training.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/terminal.h"
#include "apps/training/recipe.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

// Draws a tenth of the texts for validation; equal texts stay together, and those of which there are more than a tenth
// are learned. Of stories, takes the last tenth.
void hold_out(std::vector<LabelledText>& texts, std::vector<LabelledText>& held, i64 seed, const std::string& task,
              const std::string& path) {
  Rng numbers = random_numbers(seed, Purpose::held_out);
  const std::vector<i64> order = numbers.permutation(std::ssize(texts));
  std::map<std::vector<std::string>, size_t> left, drawn;  // texts, and how many are equal
  for (const LabelledText& text : texts) ++left[text.words];
  const auto draw = [&](i64 number) { drawn.insert(left.extract(texts[static_cast<size_t>(number)].words)); };
  size_t room = std::max<size_t>(1, texts.size() / 10);
  for (const i64 number : order) {
    const auto found = left.find(texts[static_cast<size_t>(number)].words);
    if (found == left.end() || found->second > room) continue;
    room -= found->second;
    draw(number);
  }
  if (drawn.empty()) draw(order[0]);
  const i64 stories = texts.back().story, kept_stories = stories - std::max<i64>(1, stories / 10);
  const auto first_held = std::stable_partition(texts.begin(), texts.end(), [&](const LabelledText& text) {
    return stories > 0 ? text.story <= kept_stories : !drawn.contains(text.words);
  });
  held.assign(first_held, texts.end());
  texts.erase(first_held, texts.end());
  check(!texts.empty() || held.size() > 1 || held[0].labels.size() < 2, task, path, " is one text of ",
        held[0].labels.size(), " words: an empty line must stand after each sentence");
  check(!texts.empty(), task, path, " has too few different texts to hold some out; --valid names others");
}

}  // namespace

void BertTraining::add_options(CLI::App& command) {
  text_options = {add_file(command, "FILE", file_, file_help())};
  begin_group(command, "Text");
  const std::string held = has_stories_ ? "the last tenth of the stories" : "a tenth of the others",
                    found = has_stories_ ? "their words are the tokens" : "those that SentencePiece finds",
                    drawn = has_stories_ ? "" : ", drawn by the seed";
  text_options.push_back(
      add_file(command, "--valid", valid_, "Texts to validate with; if not given, " + held + " is held out" + drawn));
  add_columns(command);
  max_tokens_ =
      add_whole_number(command, "--max-tokens", most_tokens_, 3, 65536,
                       "Tokens that the model reads at once, [CLS] and [SEP] included; a longer text loses its end, "
                       "which is counted, or becomes several in pretraining. At most the positions of --init");
  add_file(
      command, "--vocab", vocabulary_file_,
      "Cut words into the pieces of this vocab.txt of BERT; if not given, those of --init or, without it, " + found);
  from_scratch_ = added_by(command, [&] {
    if (!has_stories_)
      add_whole_number(command, "--vocab-size", vocabulary_size_, first_piece_id + 1, largest_vocabulary,
                       "The most tokens that SentencePiece may find");
    begin_group(command, "Model");
    add_fields(command, config_, {"num_layers", "repeats", "num_heads", "d_model", "d_ff"});
    if (has_stories_) add_fields(command, config_, {"sentence_sums"});
  });
  add_fields(command, config_, {"dropout"});
  begin_group(command, training_group);
  also_fitted = {add_whole_number(command, "--batch", batch_, 1, 65536, "Texts of a micro-batch, of similar lengths"),
                 add_whole_number(command, "--epochs", epochs_, 1, 1000000,
                                  "How often each text is read; if not given, 3 times with --init and 10 times "
                                  "without, and at least for 200 or 500 steps")};
  show_default(also_fitted.back(), "");
  add_recipe_options(command, recipe_,
                     {.warmup = "a tenth of all",
                      .evaluate_every = "an epoch, or a twentieth of all, whichever is longer",
                      .steps = "as --epochs says",
                      .rate = tuning_rate_ + " with --init and 5e-4 without"});
  const std::vector<CLI::Option*> all = options_of(command);
  exclude(also_fitted.back(),
          {*std::find_if(all.begin(), all.end(), [](const auto* each) { return typed_name(each) == "--steps"; })});
}

void BertTraining::settle() {
  for (CLI::Option* option : from_scratch_) {
    if (!starts_from_another()) continue;
    if (is_given(option)) usage_error(typed_name(option), "is that of the model of --init");
    std::erase(run.deciding, option);
  }
  check_heads(config_.layer);
  if (recipe_.rate == TrainingRecipe::automatic) recipe_.rate = starts_from_another() ? std::stod(tuning_rate_) : 5e-4;
  check_recipe_options(recipe_);
  for (std::string* path : {&file_, &valid_, &vocabulary_file_}) *path = absolute_path(*path);
}

void BertTraining::check_given() const {
  if (file_.empty()) usage_error("FILE", "is required: the texts to learn");
}

std::vector<NamedFile> BertTraining::texts() const {
  std::vector<NamedFile> all{{"the texts to learn,", file_}};
  if (!valid_.empty()) all.push_back({"--valid", valid_});
  return all;
}

std::optional<KnownTraining> BertTraining::known_training() {
  return KnownTraining{.batch = batch_,
                       .good_batch = 32,
                       .steps = least_steps(),
                       .rate = recipe_.rate,
                       .least_batch = 8,
                       .items = static_cast<double>(learned_.size()),
                       .epochs = static_cast<double>(usual_epochs())};
}

Task& BertTraining::build() {
  Rng weights = random_numbers(recipe_.seed, Purpose::weights);
  model_.emplace(config_, weights);
  batches_.emplace(batches_of(learned_, batch_, random_numbers(recipe_.seed, Purpose::training)));
  recipe_.width = config_.layer.d_model;
  return *this;
}

Metadata BertTraining::of_model() const {
  Metadata metadata = tokens_->metadata();
  metadata[std::string(nn::config_key)] = nn::to_json(model_->config);
  metadata[std::string(task_key)] = program();
  return metadata;
}

// The sizes of a model or a training that is there already are kept.
void BertTraining::take_config(const std::string& path, const Metadata& kept) {
  const double dropout = config_.layer.dropout;
  config_ =
      kept.contains(std::string(nn::config_key)) ? nn::config_of<nn::BertConfig>(kept, path) : nn::bert_config(path);
  config_.layer.dropout = dropout;
  config_.layer.attention_dropout.reset();
  check(vocabulary_file_.empty() || !run.resume.empty() || !TextTokens::in(kept, path), program(), "--init ", path,
        " says what its tokens are: leave --vocab out");
}

// So are its tokens. Without any, SentencePiece finds some in the texts.
void BertTraining::take_tokens(const std::string& path, const Metadata& kept, const std::vector<LabelledText>& texts) {
  if (!vocabulary_file_.empty() && run.resume.empty()) {
    tokens_.emplace(WordPiece::of_file(vocabulary_file_));
  } else if (!path.empty()) {
    tokens_ = TextTokens::of_model(kept, path);
  } else {
    std::vector<std::string_view> lines;
    for (const LabelledText& text : texts) lines.insert(lines.end(), text.words.begin(), text.words.end());
    tokens_.emplace(within("read " + file_, [&] {
      return has_stories_ ? Vocabulary::of_segmented(lines) : Vocabulary::of_text(lines, vocabulary_size_);
    }));
  }
  if (path.empty()) {
    config_.vocab_size = tokens_->size();
    config_.max_positions = most_tokens_;
    constexpr i64 most_segments = 128;
    for (const LabelledText& text : texts)
      if (text.story > 0)
        config_.type_vocab_size = std::clamp(std::ssize(text.words), config_.type_vocab_size, most_segments);
  }
  if (!is_given(max_tokens_)) most_tokens_ = std::min(most_tokens_, config_.max_positions);
  config_.pad_id = tokens_->pad();
  config_.head = head();
  tokens_->check_fit(config_, path);
  if (most_tokens_ > config_.max_positions)
    usage_error("--max-tokens", "must be at most the model's " + std::to_string(config_.max_positions));
}

void BertTraining::read(const std::string& path, const Metadata& kept) {
  if (!path.empty()) take_config(path, kept);
  const Phase phase("reading " + file_ + " as tokens");
  std::vector<LabelledText> learned = read_file(file_), held;
  look_at(learned);
  if (valid_.empty())
    hold_out(learned, held, recipe_.seed, program(), file_);
  else
    held = read_file(valid_);
  take_tokens(path, kept, learned);
  learned_ = encoded(learned, file_);
  held_ = encoded(held, valid_.empty() ? file_ : valid_);
  resolve();
}

// What TrainingRecipe::automatic stands for.
void BertTraining::resolve() {
  const auto parts = [](i64 whole, i64 part) { return (whole + part - 1) / part; };
  const i64 in_epoch = parts(parts(std::ssize(learned_), batch_), recipe_.micro_batches);
  const i64 usual = std::max(usual_epochs() * in_epoch, least_steps());
  const auto set = [](i64& value, i64 otherwise) {
    if (value == TrainingRecipe::automatic) value = std::max<i64>(1, otherwise);
  };
  set(recipe_.steps, epochs_ == TrainingRecipe::automatic ? usual : epochs_ * in_epoch);
  epochs_ = TrainingRecipe::automatic;  // the model keeps the steps alone
  set(recipe_.warmup, recipe_.steps / 10);
  set(recipe_.evaluate_every, std::max(in_epoch, recipe_.steps / 20));
}

SavedForm saved_form(const std::string& task, nn::BertHead head, const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished(task, path, metadata);
  const nn::BertConfig config = nn::bert_config(path);
  const bool has_head = config.head == head || (head == nn::BertHead::pretraining && config.has_words());
  check(has_head, task, path, " was not saved by orrery ", task, " (its head is ",
        names(config.head)[static_cast<size_t>(config.head)], "); orrery inspect says what it is");
  const TextTokens tokens = TextTokens::of_model(metadata, path);
  tokens.check_fit(config, path);
  return {metadata, config, tokens};
}

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
