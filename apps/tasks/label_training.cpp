// Chapter 9. Training a BERT on labels: its options, its texts, its batches.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "apps/data/text_file.h"
#include "apps/program/terminal.h"
#include "apps/tasks/label_task.h"
#include "apps/training/program.h"
#include "apps/training/random_numbers.h"
#include "autograd/ops/cross_entropy.h"
#include "core/tensor_ops.h"
#include "nn/files/bert_files.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

// Draws a tenth of the texts for validation; equal texts stay together.
void hold_out(std::vector<LabelledText>& texts, std::vector<LabelledText>& held, i64 seed, const std::string& task,
              const std::string& path) {
  Rng numbers = random_numbers(seed, Purpose::held_out);
  std::set<std::vector<std::string>> drawn;
  const std::vector<i64> order = numbers.permutation(std::ssize(texts));
  for (size_t i = 0; i < std::max<size_t>(1, texts.size() / 10); ++i)
    drawn.insert(texts[static_cast<size_t>(order[i])].words);
  const auto first_held = std::stable_partition(texts.begin(), texts.end(),
                                                [&](const LabelledText& text) { return !drawn.contains(text.words); });
  held.assign(first_held, texts.end());
  texts.erase(first_held, texts.end());
  check(!texts.empty(), task, path, " has too few different texts to hold some out; --valid names others");
}

// `orrery TASK train`, all that its options say, and what it trains.
class LabelTraining final : public TrainingProgram, public Task {
 public:
  explicit LabelTraining(std::shared_ptr<LabelTask> task) : task_(std::move(task)) {}

  std::string program() const override { return task_->name(); }
  std::string command() const override { return "orrery " + program() + " train"; }
  TrainingRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  void settle() override;
  void check_given() const override {
    if (file_.empty()) usage_error("FILE", "is required: the texts to learn");
  }
  std::vector<NamedFile> texts() const override {
    std::vector<NamedFile> all{{"the texts to learn,", file_}};
    if (!valid_.empty()) all.push_back({"--valid", valid_});
    return all;
  }
  void read(const std::string& path, const Metadata& kept) override;
  i64 expected_parameters() const override { return config_.parameter_count(); }
  // Devlin et al.'s recipe, as resolve() has it.
  std::optional<KnownTraining> known_training() override {
    return KnownTraining{.batch = batch_,
                         .good_batch = 32,
                         .steps = least_steps(),
                         .rate = recipe_.rate,
                         .least_batch = 8,
                         .items = static_cast<double>(learned_.size()),
                         .epochs = static_cast<double>(usual_epochs())};
  }
  bool may_lack(const std::string& on_disk) const override { return nn::is_of_task(on_disk); }
  void started() override;
  Task& build() override {
    Rng weights = random_numbers(recipe_.seed, Purpose::weights);
    model_.emplace(config_, weights);
    batches_.emplace(batches_of(learned_, batch_, random_numbers(recipe_.seed, Purpose::training)));
    recipe_.width = config_.layer.d_model;
    return *this;
  }
  void announce() override;
  Metadata of_model() const override {
    Metadata metadata = tokens_->metadata();
    metadata[std::string(nn::config_key)] = nn::to_json(model_->config);
    return metadata;
  }
  std::string sample() override { return task_->table(last_, config_.labels); }
  Score report(Trainer& trainer) override {
    const Score score = TrainingProgram::report(trainer);
    if (!sample().empty()) std::cout << for_reader(sample(), STDOUT_FILENO) << std::endl;
    return score;
  }

  nn::Module& module() override { return *model_; }
  std::string unit() const override { return "texts"; }
  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override {
    const auto& [ids, labels] = drawn_[static_cast<size_t>(micro_batch)];
    return {cross_entropy(model_->logits(model_->hidden(ids, {}, pass), pass), labels)};
  }
  double loss_of_guessing() const override { return std::log(std::ssize(config_.labels)); }
  std::vector<Score> evaluate() override {
    last_ = judged(*model_, held_);
    return task_->scores(last_, config_.labels);
  }

 private:
  bool starts_from_another() const { return !run.init.empty(); }
  i64 usual_epochs() const { return starts_from_another() ? 3 : 10; }
  i64 least_steps() const { return starts_from_another() ? 200 : 500; }
  void use_labels(const std::vector<LabelledText>& texts);
  void resolve();

  std::shared_ptr<LabelTask> task_;
  TrainingRecipe recipe_{.steps = TrainingRecipe::automatic,
                         .optimizer = OptimizerKind::adamw,
                         .beta2 = 0.999,
                         .eps = 1e-8,
                         .weight_decay = 0.01,
                         .schedule = Schedule::constant,
                         .rate = TrainingRecipe::automatic,
                         .warmup = TrainingRecipe::automatic,
                         .cooldown = 0.9,
                         .evaluate_every = TrainingRecipe::automatic};
  nn::BertConfig config_{.layer = {.d_model = 128, .num_heads = 4, .d_ff = 512, .dropout = 0.1}, .num_layers = 2};
  std::string file_, valid_, vocabulary_file_;
  i64 vocabulary_size_ = 4000, most_tokens_ = 128, batch_ = 32, epochs_ = TrainingRecipe::automatic;
  std::vector<CLI::Option*> from_scratch_;  // the options that --init decides
  CLI::Option* max_tokens_ = nullptr;
  std::vector<std::string> labels_of_init_;
  std::optional<TextTokens> tokens_;
  EncodedTexts learned_, held_;
  std::optional<translate::BatchesByLength> batches_;
  std::optional<nn::Bert> model_;
  std::vector<std::pair<Tensor, Tensor>> drawn_;  // ids and labels of the current step
  JudgedTexts last_;                              // of the latest evaluation
};

void LabelTraining::add_options(CLI::App& command) {
  text_options = {add_file(command, "FILE", file_, "Texts to learn with their labels, UTF-8")};
  begin_group(command, "Text");
  text_options.push_back(add_file(command, "--valid", valid_,
                                  "Texts to validate with; if not given, a tenth of the others is held out, drawn by "
                                  "the seed"));
  task_->add_columns(command);
  max_tokens_ = add_whole_number(command, "--max-tokens", most_tokens_, 3, 65536,
                                 "Tokens of the longest text, [CLS] and [SEP] included; longer ones are cut off there, "
                                 "and counted. At most the positions of --init");
  add_file(command, "--vocab", vocabulary_file_,
           "Cut words into the pieces of this vocab.txt of BERT; if not given, those of --init or, without it, those "
           "that SentencePiece finds");
  from_scratch_ = added_by(command, [&] {
    add_whole_number(command, "--vocab-size", vocabulary_size_, first_piece_id + 1, largest_vocabulary,
                     "The most tokens that SentencePiece may find");
    begin_group(command, "Model");
    add_fields(command, config_, {"num_layers", "num_heads", "d_model", "d_ff"});
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
                      .rate = "5e-5 with --init and 5e-4 without"});
  const std::vector<CLI::Option*> all = options_of(command);
  exclude(also_fitted.back(),
          {*std::find_if(all.begin(), all.end(), [](const auto* each) { return typed_name(each) == "--steps"; })});
}

void LabelTraining::settle() {
  for (CLI::Option* option : from_scratch_) {
    if (!starts_from_another()) continue;
    if (is_given(option)) usage_error(typed_name(option), "is that of the model of --init");
    std::erase(run.deciding, option);
  }
  check_heads(config_.layer);
  if (recipe_.rate == TrainingRecipe::automatic) recipe_.rate = starts_from_another() ? 5e-5 : 5e-4;
  check_recipe_options(recipe_);
  for (std::string* path : {&file_, &valid_, &vocabulary_file_}) *path = absolute_path(*path);
}

// The labels of the texts, in their order. Error: there is only one, or so many that they are none.
void LabelTraining::use_labels(const std::vector<LabelledText>& texts) {
  std::set<std::string> labels;
  for (const LabelledText& text : texts) labels.insert(text.labels.begin(), text.labels.end());
  check(labels.size() > 1, program(), file_, " has only one label, ", printable(labels.empty() ? "" : *labels.begin()),
        ": there is nothing to tell apart");
  check_labels(program(), file_, labels.size());
  config_.labels.assign(labels.begin(), labels.end());
}

// The tokens and the sizes of a model or a training that is there already are kept.
void LabelTraining::read(const std::string& path, const Metadata& kept) {
  if (!path.empty()) {
    const double dropout = config_.layer.dropout;
    config_ =
        kept.contains(std::string(nn::config_key)) ? nn::config_of<nn::BertConfig>(kept, path) : nn::bert_config(path);
    labels_of_init_ = config_.labels;
    config_.layer.dropout = dropout;
    config_.layer.attention_dropout.reset();
    check(vocabulary_file_.empty() || !run.resume.empty() || !TextTokens::in(kept, path), program(), "--init ", path,
          " says what its tokens are: leave --vocab out");
  }
  const Phase phase("reading " + file_ + " as tokens");
  std::vector<LabelledText> learned = task_->read(file_), held;
  use_labels(learned);
  if (valid_.empty())
    hold_out(learned, held, recipe_.seed, program(), file_);
  else
    held = task_->read(valid_);
  if (!vocabulary_file_.empty() && run.resume.empty()) {
    tokens_.emplace(WordPiece::of_file(vocabulary_file_));
  } else if (!path.empty()) {
    tokens_ = TextTokens::of_model(kept, path);
  } else {
    std::vector<std::string_view> lines;
    for (const LabelledText& text : learned) lines.insert(lines.end(), text.words.begin(), text.words.end());
    tokens_.emplace(within("read " + file_, [&] { return Vocabulary::of_text(lines, vocabulary_size_); }));
  }
  if (path.empty()) {
    config_.vocab_size = tokens_->size();
    config_.max_positions = most_tokens_;
  }
  if (!is_given(max_tokens_)) most_tokens_ = std::min(most_tokens_, config_.max_positions);
  config_.pad_id = tokens_->pad();
  config_.head = task_->head();
  tokens_->check_fit(config_, path);
  if (most_tokens_ > config_.max_positions)
    usage_error("--max-tokens", "must be at most the model's " + std::to_string(config_.max_positions));
  const TextReader reader{*tokens_, config_, most_tokens_};
  learned_ = reader(learned);
  held_ = reader(held);
  resolve();
}

// What TrainingRecipe::automatic stands for.
void LabelTraining::resolve() {
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

// A classifier of other labels is of no use.
void LabelTraining::started() {
  if (labels_of_init_.size() != config_.labels.size() || labels_of_init_ == config_.labels) return;
  std::cerr << "  other labels: its classifier is left out\n";
  Rng weights = random_numbers(recipe_.seed, Purpose::weights);
  nn::Bert drawn(config_, weights);
  copy_into(model_->classifier->weight.mutable_value(), drawn.classifier->weight.value());
  copy_into(model_->classifier->bias.mutable_value(), drawn.classifier->bias.value());
}

void LabelTraining::announce() {
  std::map<i32, i64> counts;
  i64 cut = 0;
  for (const EncodedText& text : learned_) {
    cut += text.is_cut;
    for (const i32 label : text.right) ++counts[label];
  }
  for (const EncodedText& text : held_) cut += text.is_cut;
  constexpr size_t most_shown = 20;
  std::vector<std::string> shown;
  for (size_t i = 0; i < config_.labels.size(); ++i)
    shown.push_back(config_.labels[i] + " (" + std::to_string(counts[static_cast<i32>(i)]) + ")");
  std::cerr << learned_.size() << " texts to learn, " << held_.size()
            << (valid_.empty() ? " held out of them, drawn by the seed, to validate with\n" : " to validate with\n")
            << config_.labels.size() << " labels: " << harmless(some_of(shown, most_shown)) << '\n';
  if (cut > 0) std::cerr << cut << " texts are cut off at " << most_tokens_ << " tokens\n";
}

std::vector<Items> LabelTraining::draw(i64 step, i64 micro_batches) {
  drawn_.clear();
  std::vector<Items> items;
  for (i64 i = 0; i < micro_batches; ++i) {
    const std::span<const i64> texts = batches_->batch((step - 1) * micro_batches + i);
    const Tensor ids = ids_of(learned_, texts, config_.pad_id);
    const bool of_words = config_.head == nn::BertHead::token;
    Tensor labels = full(of_words ? ids.shape() : Shape{ids.size(0)}, CrossEntropyOptions{}.ignore_index);
    i32* row = labels.write<i32>();
    i64 counted = 0;
    for (const i64 number : texts) {
      const EncodedText& text = learned_[static_cast<size_t>(number)];
      for (size_t word = 0; word < text.places.size(); ++word) row[text.places[word]] = text.right[word];
      counted += std::ssize(text.places);
      row += of_words ? ids.size(1) : 1;
    }
    drawn_.emplace_back(ids, labels);
    items.push_back({counted, std::ssize(texts)});
  }
  return items;
}

}  // namespace

std::shared_ptr<TrainingProgram> label_training(std::shared_ptr<LabelTask> task) {
  return std::make_shared<LabelTraining>(std::move(task));
}

}  // namespace orrery
