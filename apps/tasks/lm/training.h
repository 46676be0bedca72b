// Chapter 9. Training a GPT on a text, token by token.
//
// The defaults are nanoGPT's recipe for a CPU (github.com/karpathy/nanoGPT, README, "I only have a macbook"): 4 layers
// with 4 heads and d_model 128, without biases, blocks of 64 characters, 12 in a batch, 2,000 steps of AdamW, no
// dropout; "gets us a loss of only 1.88". That loss is an estimate: the mean over 20 batches of random validation
// blocks. It is measured every 250 steps, and the lowest estimate is reported. At the end we also measure the loss over
// the whole validation text, block after block.
//
// Two things differ from nanoGPT; model, steps, batch, rates, decay and initialisation do not.
//   order     nanoGPT draws each block from anywhere in the text. Its 2,000 steps read 1.5 times the length of the
//             text, yet never see a fifth of it. Here every block comes once before any comes again (text.h).
//   average   nanoGPT evaluates the parameters of the last step. Here their exponential mean over the steps is
//             evaluated, saved and used for sampling, with AdamW's own beta2 as its decay, as Kingma and Ba (2015,
//             section 7.2, "Temporal averaging") propose for Adam. The steps themselves do not depend on it.
// What both gain: apps/measure/bench/README.md.
//
// With --minutes the model follows from the time. In a given time, a larger model reads fewer tokens. Too small a model
// has learned all it can, and too large a one has hardly begun; in between, parameters and tokens grow together
// (Hoffmann et al. 2022, "Training compute-optimal large language models", arXiv 2203.15556). So the first seconds
// measure this machine's speed, in parameters times tokens for each second. A table says which model is best for the
// work that fits into the time.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "apps/data/text.h"
#include "apps/data/text_data.h"
#include "apps/training/deadline.h"
#include "nn/models/gpt.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// What is trained: a decoder without an encoder.
using LanguageModel = nn::Gpt;
using LanguageModelConfig = nn::GptConfig;

/// Everything that decides how a model is trained.
struct LmRecipe : TrainingRecipe {
  LanguageModelConfig model = nn::gpt_preset("nanogpt");  ///< vocab_size follows from the text; max_len is the block
  i64 block = 0;                                          ///< tokens of a block; 0: as many as the model sees
  i64 batch = 12;
  bool replacement = false;  ///< each block is drawn from anywhere in the text
  i64 estimate_batches = 20;

  LmRecipe();
  i64 length() const { return block > 0 ? block : model.max_len; }
  /// The same recipe with the model's width and the warm-up that `automatic` stands for: a twentieth of all steps, at
  /// most 100, and at least one step where the schedule needs it.
  LmRecipe resolved() const;
  /// The model with the vocabulary of a text.
  LanguageModelConfig model_for(const TextData& data) const;
  /// Errors: numbers with which no training is possible. The model is not checked here.
  void validate() const;
};

/// The mean loss of `model` over a text. Every token except the first counts once. The model reads the text in blocks
/// of at most its length, each `stride` tokens after the one before. Of each block only the last `stride` tokens count,
/// those that no earlier block predicted. So a token is predicted from at least the (length - stride) tokens before it,
/// if there are that many. A stride of the whole length, which `stride` = 0 stands for, reads each token once. A
/// smaller one takes longer; the loss is as a rule lower, as the model sees more of the text. `progress`, if given, is
/// called again and again with the number of tokens that have counted so far. Errors: a text of fewer than two tokens;
/// a stride that is negative or larger than the model's length.
double loss_over(const LanguageModel& model, const Text& text, i64 stride = 0,
                 const std::function<void(i64 counted)>& progress = {});

/// A GPT, the blocks of a text, and as validation loss the mean over random blocks of the validation text, new ones
/// each time. Which blocks it sees depends only on the seed. The recipe, which it resolves, must outlive the task.
class LmTask final : public Task {
 public:
  LmTask(LmRecipe& recipe, const TextData& data);

  std::string program() const override { return "lm"; }
  nn::Module& module() override { return model; }
  LmRecipe& recipe() override { return recipe_; }
  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override;
  double loss_of_guessing() const override { return std::log(model.config.vocab_size); }
  std::vector<Score> evaluate() override;
  double seconds_of_evaluation() override;
  std::vector<u64> positions() const override { return {blocks_.position(), judged_.position()}; }
  void go_to(const std::vector<u64>& positions) override;

  /// The loss over the whole validation text.
  double validation_loss() const { return loss_over(model, data_.validation); }
  /// A loss as bits per character and byte of the validation text, whose tokens need be neither.
  std::string as_bits(double loss) const { return in_bits(loss, validation_length_, data_.is_utf8); }
  /// What `evaluate` returned last.
  double last_estimate() const { return last_estimate_; }
  /// A sample of `count` tokens at temperature 0.8. It depends only on the seed and the model.
  std::string sample(i64 count) const;

  LanguageModel model;

 private:
  TextBatch next_batch(i64 number);
  // The losses of so many batches of an estimate.
  double estimate(i64 batches);

  LmRecipe& recipe_;
  TextData data_;
  TextLength validation_length_;
  double last_estimate_ = 0;
  Rng blocks_, judged_;
  ShuffledBlocks shuffled_;
  std::vector<TextBatch> batches_;  // of the step that was drawn
};

/// Chooses what --minutes leaves open: a model, a batch, rates and steps (apps/training/deadline.h).
void fit(LmRecipe& recipe, const TextData& data, TimeBudget& budget);

/// Ends the training with the model of the lowest estimate or with the last one, whichever has the lower loss over the
/// whole validation text. Returns that loss.
double end_with_better(Trainer& trainer, const LmTask& task);

/// A saved model and its tokens.
struct LmModel {
  Tokenizer tokenizer;
  LanguageModel model;
};
/// A model to read, and what its file may not say if another program wrote it.
struct LmSource {
  std::string path;
  i64 heads = 0;           ///< 0: what the file says
  std::string characters;  ///< the name of a text whose characters are the tokens; "": what the file says
  std::string separator;   ///< the line between documents; "": what the file says
};
/// The tokens that the metadata of the model at `path` say or, of a published GPT-2, the vocab.json and merges.txt
/// beside it; nothing if there are neither. Errors: damaged metadata; those of `BytePairs::read`.
std::optional<Tokenizer> tokens_of_model(const Metadata& metadata, const std::string& path);
/// Reads a model. Errors: those of `nn::load_gpt`; tokens that neither the file nor `characters` says, or both; as many
/// tokens as the model does not have; those of `Tokenizer::separate_at`; a separator besides that of the file.
LmModel load_lm(const LmSource& source);

/// --load and --heads, which find a GPT. Heads are 0 if the option is not given.
void add_loaded_gpt(CLI::App& command, std::string& path, i64& heads);

void add_lm_sample(CLI::App& lm, int& exit_code);
void add_lm_eval(CLI::App& lm, int& exit_code);
void add_lm_export(CLI::App& lm, int& exit_code);

/// The contents of a tokenizer.json whose ids are those of `tokenizer`, which has no byte pairs. Characters: text with
/// another one is an error there, too. Bytes: any text that is UTF-8. Pieces: the same model, in which U+2581 and the
/// names of tokens, such as "<0x0A>", cannot be told from what they stand for.
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace orrery
