// Chapter 9. Short trainings for experiments: a task, a model, a few hundred steps, an exam.
//
// Each training is repeated with three seeds. The seed decides the first weights, the data and the dropout.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/measure/claims/claims.h"
#include "core/mask.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::claims {

/// Where the model gets the order of its tokens from.
enum class Order { none, sinusoidal, learned };

struct SequenceModelConfig {
  i64 symbols = 0;
  nn::LayerOptions layer{.d_model = 32, .num_heads = 4, .d_ff = 64, .dropout = 0};
  i64 num_layers = 2;
  i64 max_len = 0;
  Order order = Order::sinusoidal;
  Mask mask = Mask::causal();
};

/// A tiny model: tokens in, scores for a token out at every position.
///   x = sqrt(d_model) embedding[ids] + positions;   logits = generator(encoder(x, mask))
/// With a causal mask it is a language model, with the mask that allows everything an encoder. The mask, the positions
/// and every part of a layer can be chosen, so that each claim changes exactly one thing.
struct SequenceModel : nn::Module {
  Mask mask;
  nn::Embedding embedding;
  std::optional<nn::PositionalEncoding> positions;
  nn::Encoder encoder;
  nn::Linear generator;

  SequenceModel(const SequenceModelConfig& config, Rng& rng);
  /// ids i32 [B, T] to logits [B, T, symbols].
  Variable operator()(const Tensor& ids, nn::Pass& pass) const;
  void visit(nn::Visitor& v) override;
};

/// Tokens [B, T], and what the model has to answer at each position; `ignored` where nothing is asked.
struct Lesson {
  Tensor ids, labels;
};
inline constexpr i32 ignored = -100;

/// Draws `count` sequences of `length` tokens.
using Task = std::function<Lesson(i64 count, i64 length, Rng& rng)>;
/// Uniform tokens; the answer at each position is the token `back` positions before it.
Task earlier_token(i64 symbols, i64 back);
/// A language: each token repeats the one two before it with this probability, else it is uniform. The answer at each
/// position is the next token.
Task noisy_language(i64 symbols, double repeats);
/// The entropy of a token after the first two, in nats: no model of this language has a smaller mean loss.
double entropy_of_noisy_language(i64 symbols, double repeats);

struct TrainingPlan {
  i64 steps = 200, batch = 16, length = 16;
  double rate = 3e-3;    ///< the largest learning rate
  i64 warmup = 20;       ///< steps in which it rises to that; then it falls along half a cosine. 0: it starts there
  double smoothing = 0;  ///< of the labels
};

/// Per target: cross entropy without smoothing, and the share of targets with the highest score.
struct Score {
  double loss = 0, accuracy = 0;
};

/// Trains the model and returns its mean score over the last tenth of the steps. A loss that is not finite ends the
/// training; it is then the score.
Score train(SequenceModel& model, const Task& task, const TrainingPlan& plan, u64 seed, const Run& run);
/// The model's score in a lesson.
Score examine(const SequenceModel& model, const Lesson& lesson);

/// Where the random numbers of exams start, so that they are none of the training's.
inline constexpr u64 training_numbers = u64{1} << 40, exam_numbers = u64{2} << 40;
/// The seeds of every experiment.
inline constexpr u64 seeds[] = {1, 2, 3};
/// What `measure` returns for each seed.
template <class Measure> auto for_each_seed(const Measure& measure) {
  std::vector<decltype(measure(u64{}))> results;
  for (const u64 seed : seeds) results.push_back(measure(seed));
  return results;
}

/// `what`, followed by the value for each seed.
std::string for_seeds(const std::string& what, const std::vector<double>& values);
double least(const std::vector<double>& values);
double most(const std::vector<double>& values);
double mean_of(const std::vector<double>& values);

}  // namespace orrery::claims
