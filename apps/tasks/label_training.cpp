// Chapter 9. Training a BERT on labels: its texts, its labels, its batches.
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "apps/data/text_file.h"
#include "apps/program/terminal.h"
#include "apps/tasks/bert_training.h"
#include "apps/tasks/label_task.h"
#include "apps/training/recipe.h"
#include "autograd/ops/cross_entropy.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// `orrery TASK train`, all that its options say, and what it trains.
class LabelTraining final : public BertTraining {
 public:
  explicit LabelTraining(std::shared_ptr<LabelTask> task) : task_(std::move(task)) {
    constexpr i64 usual_tokens = 128, of_stories = 512;
    has_stories_ = config_.sentence_sums = task_->has_stories();
    tuning_rate_ = task_->tuning_rate();
    most_tokens_ = has_stories_ ? of_stories : usual_tokens;
  }

  std::string program() const override { return task_->name(); }
  void started() override;
  void announce() override;
  std::string sample(bool is_best) override { return is_best ? task_->table(last_, config_.labels) : ""; }
  Score report(Trainer& trainer) override {
    if (trainer.best_step() > 0)
      std::cerr << "the best model is that of step " << trainer.best_step() << ", judged by " << held_.size()
                << " texts\n";
    const Score score = TrainingProgram::report(trainer);
    if (const std::string table = sample(true); !table.empty())
      std::cout << for_reader(table, STDOUT_FILENO) << std::endl;
    warn_of_one_answer(*task_, last_, config_.labels);
    return score;
  }

  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override {
    const auto& [ids, segments, labels] = drawn_[static_cast<size_t>(micro_batch)];
    return {cross_entropy(model_->logits(model_->hidden(ids, segments, pass), pass), labels)};
  }
  double loss_of_guessing() const override { return std::log(std::ssize(config_.labels)); }
  std::vector<Score> evaluate() override {
    last_ = judged(*model_, held_, judges());
    return task_->scores(last_, config_.labels);
  }

 private:
  std::string file_help() const override { return "Texts to learn with their labels, UTF-8"; }
  void add_columns(CLI::App& command) override { task_->add_columns(command); }
  nn::BertHead head() const override { return task_->head(); }
  std::vector<LabelledText> read_file(const std::string& path) const override { return task_->read(path); }
  void look_at(const std::vector<LabelledText>& texts) override;
  EncodedTexts encoded(const std::vector<LabelledText>& texts, const std::string&) const override {
    return TextReader{*tokens_, config_, most_tokens_}(texts);
  }

  std::shared_ptr<LabelTask> task_;
  std::vector<std::string> labels_of_init_;
  struct Drawn {
    Tensor ids, segments, labels;
  };
  std::vector<Drawn> drawn_;  // of the current step
  JudgedTexts last_;          // of the latest evaluation
};

// The labels of the texts, in their order. Error: there is only one, or so many that they are none.
void LabelTraining::look_at(const std::vector<LabelledText>& texts) {
  labels_of_init_ = config_.labels;
  std::set<std::string> labels;
  for (const LabelledText& text : texts) labels.insert(text.labels.begin(), text.labels.end());
  check(labels.size() > 1, program(), file_, " has only one label, ", printable(labels.empty() ? "" : *labels.begin()),
        ": there is nothing to tell apart");
  check_labels(program(), file_, labels.size());
  config_.labels.assign(labels.begin(), labels.end());
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
            << (!valid_.empty() ? " to validate with\n"
                : has_stories_  ? " held out of them, the last stories, to validate with\n"
                                : " held out of them, drawn by the seed, to validate with\n")
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
    drawn_.push_back({ids, segments_of(learned_, texts), labels});
    items.push_back({counted, std::ssize(texts)});
  }
  return items;
}

}  // namespace

std::shared_ptr<TrainingProgram> label_training(std::shared_ptr<LabelTask> task) {
  return std::make_shared<LabelTraining>(std::move(task));
}

}  // namespace orrery
