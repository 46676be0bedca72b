// Chapter 0. The toy tasks: sequences of symbols, and the answers that the model must learn.
//
//   reverse   b a d c  ->  c d a b        copy   b a d c  ->  b a d c        sort   b a d c  ->  a b c d
// Whether a sequence is held out depends on its content: those whose hash is a multiple of 8 are never trained on. So
// the final exam shows that the model has learned the rule instead of memorising sequences.
//
// Training and examining the toy: its recipe, its batches and its exam. Its models in files: what --save writes, and
// how --load answers.
//   $ echo headache | orrery toy --load reverse.safetensors
//   e h c a d a e h
// What a toy attends to, as a picture in the terminal; what the steps of its training did, as numbers to draw; and the
// toy itself, as a page that computes. In the picture rows are queries, columns keys. The darker a cell, the larger the
// weight of that key's value for that query.
#pragma once

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "apps/show/attention/attention_page.h"
#include "apps/show/figure/figures.h"
#include "apps/training/trainer.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"

namespace orrery {

/// Symbols as token ids.
using Sequence = std::vector<i32>;

/// A task, and how its tokens are numbered.
struct ToyTask {
  std::string name = "reverse";  ///< reverse, copy or sort
  i64 symbols = 13;              ///< different symbols
  i64 min_length = 8, max_length = 16;
  i32 pad = 0, begin = 1, end = 2;  ///< special tokens; end = -1: answers have a known length and no end mark
  i32 first_symbol = 3;             ///< the symbols are first_symbol, first_symbol + 1, ...
  bool begin_is_symbol = false;     ///< every sequence starts with `begin`, as the Annotated Transformer has it

  i64 vocab_size() const { return first_symbol + symbols; }
  /// Tokens of the longest source and of the longest target, special ones included.
  i64 source_length() const { return max_length; }
  i64 target_length() const {
    if (begin_is_symbol) return max_length;
    return max_length + (end < 0 ? 1 : 2);  // `begin`, and `end` if there is one
  }

  /// Whether symbols are written as letters; otherwise as their numbers.
  bool as_letters() const { return symbols <= 26 && !begin_is_symbol; }
  /// The correct answer to `source`.
  Sequence answer(const Sequence& source) const;
  /// The answer with the begin and end marks, if the task has them. The decoder reads all of it but the last token, and
  /// learns to predict all but the first.
  Sequence target(const Sequence& source) const;
  /// A random sequence, held out or not as asked. Error: 9,999 random sequences are all of the other kind.
  Sequence draw(Rng& rng, bool held_out) const;

  /// "a b c", or numbers if symbols are not written as letters. Tokens that are not symbols are left out.
  std::string text(const Sequence& tokens) const;
  /// What a user may type: symbols such as "a to m" or "3 to 40", and lengths such as "8 to 16".
  std::string alphabet() const;
  std::string lengths() const;
  /// The sequence that a user typed; letters may stand without blanks between them. Errors name what is not allowed, a
  /// symbol or the length, and what is.
  Sequence parse(const std::string& line) const;
};

/// True for one sequence in eight, by content.
bool is_held_out(const Sequence& source);

/// Sequences of at most `length` tokens as one tensor i32 [B, length], filled up with `pad`. Error: one is longer.
Tensor batch_of(const std::vector<Sequence>& sequences, i64 length, i32 pad);

/// The answer in row `row` of the tokens [B, T] that greedy decoding wrote: up to the end mark, or the whole row if the
/// task has none. If `begin` is a symbol, it is put in front, since the decoder reads it and does not write it.
Sequence written(const Tensor& tokens, i64 row, const ToyTask& task);

/// The task as JSON, for a saved model's metadata, and back. Errors: text that does not describe a task.
std::string to_json(const ToyTask& task);
ToyTask toy_task(const std::string& json);

/// Everything that decides how the toy is trained. Its rate is a factor of Noam's.
struct ToyRecipe : TrainingRecipe {
  ToyTask task;
  nn::TransformerConfig model{.layer = {.d_model = 64,
                                        .num_heads = 4,
                                        .d_ff = 128,
                                        .dropout = 0.1,
                                        .attention_dropout = 0.0,  // as the paper, section 5.4: on sub-layers' outputs
                                        .activation_dropout = 0.0},
                              .num_encoder_layers = 2,
                              .num_decoder_layers = 2};
  i64 batch = 64;
  double smoothing = 0.1;  ///< of the labels

  ToyRecipe() : TrainingRecipe{.rate = 1.5, .cooldown = 0.5} {}
  /// The model, with the sizes that follow from the task.
  nn::TransformerConfig config() const;
};

/// The copy task as the Annotated Transformer sets it up: 10 symbols (with padding a vocabulary of 11), length 10, its
/// model of width 512, 20 epochs of 20 batches of 80, Noam with 400 steps of warm-up at half the rate, no smoothing, no
/// clipping.
ToyRecipe annotated_recipe();

/// The paper's model, small, and its batches. The random numbers of the data depend only on the seed. The recipe, whose
/// width it sets, must outlive the task.
class ToyTrainingTask final : public Task {
 public:
  explicit ToyTrainingTask(ToyRecipe& recipe);

  std::string program() const override { return "toy"; }
  nn::Module& module() override { return model; }
  ToyRecipe& recipe() override { return recipe_; }
  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override;
  double loss_of_guessing() const override { return std::log(recipe_.task.vocab_size()); }
  std::vector<Score> evaluate() override { return {{"validation loss", validation_loss()}}; }
  std::vector<u64> positions() const override { return {data_.position()}; }
  void go_to(const std::vector<u64>& positions) override { data_ = Rng(data_.seed(), positions.at(0)); }

  /// Over the same sequences each time, none of which is ever trained on; without label smoothing.
  double validation_loss() const;

  nn::Transformer model;

 private:
  struct Batch {
    Tensor source, input, gold;  // i32: encoder input, decoder input, labels
  };
  Batch next_batch(Rng& numbers, bool held_out) const;

  ToyRecipe& recipe_;
  Rng data_;
  std::vector<Batch> batches_;  // of the step that was drawn
};

/// The toy and its trainer.
struct ToyTraining {
  explicit ToyTraining(const ToyRecipe& how) : recipe(how), task(recipe), trainer(task) {}

  ToyRecipe recipe;
  ToyTrainingTask task;
  Trainer trainer;
};

/// The model's answer to each source.
std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// An examination on sequences that were never trained on.
struct ToyExam {
  std::vector<Sequence> sources, answers;
  i64 right = 0;
};
ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed);

/// What a saved model says about itself: its configuration and its task. The file is all that is needed to rebuild it.
Metadata metadata_of(const nn::Transformer& model, const ToyTask& task);

/// What a file that `orrery toy --save` wrote holds. Errors: another file.
struct SavedToy {
  ToyTask task;
  nn::Transformer model;
};
SavedToy load_toy(const std::string& path);

/// Answers each line of stdin on stdout, with the model in the file `path`; returns the exit code. For a line that
/// cannot be answered it prints one line on stderr and continues; for a length that was not trained it prints a
/// warning. On a terminal it says what to type. Errors: a file that `orrery toy` did not save.
int answer_lines(const std::string& path);

/// The cross-attention of the head with the sharpest weights while the model writes the answer to `source`: a row for
/// each symbol written, a column for each symbol read.
AttentionFigure sharpest_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source);

/// The weights of every head, in the encoder and in both attentions of the decoder, for `source` and its right answer.
HeadsFigure every_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source);

/// The same for each of `sources` as a page for a browser, up to the first that it has no room for.
AttentionPage attention_page(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// A page for a browser in which the model itself runs (apps/show/playground): it holds every parameter, and the first
/// 100 sequences of the exam of seed 1. Errors: `refused_by_page`; a parameter that is not finite.
std::string toy_page(nn::Transformer& model, const ToyTask& task);
/// Why there is no such page of a model, such as "takes at most ... parameters, not ..."; "" if there is one. A browser
/// computes in a moment what a page takes: 4 million parameters, a page of 21 MB, and `AttentionPage::most_weights`.
std::string refused_by_page(const nn::TransformerConfig& config, const ToyTask& task);

/// How sharp the weights of a head are: the mean over its rows of the largest weight; 1 if each row reads one symbol.
double sharpness(const std::vector<std::vector<double>>& weights);

/// Prints the weights as shades of grey, with their labels.
void print_attention(std::ostream& out, const AttentionFigure& figure);

/// The smallest cross entropy that targets of `classes` classes with label smoothing allow: the entropy of a smoothed
/// target. 0 without smoothing.
double least_loss(i64 classes, double smoothing);

/// The means of loss and accuracy over equal numbers of steps, at most 120 of them.
LossFigure loss_curve(const ToyRecipe& recipe, const std::vector<StepResult>& steps);

}  // namespace orrery
