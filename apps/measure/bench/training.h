// Chapter 9. The configurations for measuring speed, the same models and batches as for other frameworks, and the
// training step that is measured: forward, loss, backward, clipping, Adam.
//
// Two kinds: encoder-decoders, and GPTs, which have no encoder. One table lists the differences, in this order: size of
// the vocabulary, d_model, heads, layers, d_ff, the shape of a batch, dropout. All are trained in the same way. The
// batch of an encoder-decoder has rows of different lengths, like a real one: every tenth source and target is two
// tokens shorter. Its labels are smoothed. A GPT reads running text, all of which counts. The tokens are random and the
// same in every step, since speed does not depend on them.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "apps/tasks/lm/training.h"
#include "autograd/ops/cross_entropy.h"
#include "nn/models/transformer.h"
#include "optim/adam.h"

namespace orrery {

/// One row of the table. Source and target have vocabularies of the same size, but each has its own embedding. A GPT
/// has `num_decoder_layers` layers and sequences of `target_length`; its encoder layers and source length are 0.
struct BenchConfig {
  std::string name;
  i64 vocab_size;
  i64 d_model, num_heads, num_encoder_layers, num_decoder_layers, d_ff;
  i64 batch, source_length, target_length;
  double dropout;
  std::string what;  ///< the source of the configuration, for the help text

  bool is_gpt() const { return num_encoder_layers == 0; }
  /// `asked`, or the configuration's own probability if `asked` is below 0.
  double dropout_or_own(double asked) const { return asked < 0 ? dropout : asked; }

  i64 d_head() const { return d_model / num_heads; }
  i64 source_tokens() const { return batch * source_length; }
  i64 target_tokens() const { return batch * target_length; }
  /// The number of tokens in a training step, with padding: the tokens of "tokens per second".
  i64 tokens_per_step() const { return source_tokens() + target_tokens(); }
  /// torch.nn.Transformer with two embeddings, sinusoidal positions and a generator. It has a norm after each sub-layer
  /// and after both stacks, biases everywhere, and `dropout` on embeddings, attention weights, inner activations and
  /// sub-layers.
  nn::TransformerConfig transformer(double dropout) const;
  /// GPT-2 with exact GELU and as many positions as the batch is long. It has biases everywhere, a tied head, and
  /// `dropout` on embeddings, attention weights and sub-layers.
  LanguageModelConfig gpt(double dropout) const;
};

/// The configuration with another batch, another length of all sequences or another d_model (d_ff changes in
/// proportion); 0 leaves it as it is. Its name then shows this: "base[B=8,T=64]". Wrong usage: a width that is not a
/// multiple of the heads.
BenchConfig scaled(BenchConfig config, i64 batch, i64 length, i64 width);

/// Every configuration.
std::span<const BenchConfig> bench_configs();
/// Their names.
std::vector<std::string> bench_config_names();
/// The configuration of this name. The error for an unknown name lists all names.
const BenchConfig& bench_config(const std::string& name);

/// The norm that gradients are clipped to, and the learning rate of Adam.
inline constexpr double bench_max_norm = 1.0, bench_learning_rate = 1e-4;

/// A model of one configuration with its batch and its optimiser.
class BenchTraining {
 public:
  /// Errors: `dropout` outside [0, 1); more memory than this machine has.
  BenchTraining(const BenchConfig& config, double dropout, i64 seed);

  /// One training step; returns the loss before the update.
  double step() {
    const double loss = pass();
    update();
    return loss;
  }
  /// The first part, forward and backward: leaves a gradient at every parameter and returns the loss. Gradients are
  /// multiplied by `dy`, the gradient of the loss itself.
  double pass(double dy = 1);
  /// The second part: clips the gradients and updates the parameters.
  void update();
  /// The loss for the batch of the last `pass`; the same bits until an update.
  Variable loss() const;
  optim::Adam& optimizer() { return adam_; }

  i64 parameter_count() {
    return std::visit([](auto& model) { return model.parameter_count(); }, model_);
  }

 private:
  u64 seed_;
  i64 steps_begun_ = 0;
  Rng rng_;
  std::variant<nn::Transformer, LanguageModel> model_;
  optim::Adam adam_;
  CrossEntropyOptions loss_options_;
  Tensor source_, input_, labels_;  // i32 [B, S], [B, T], [B, T]: `labels_` is one token ahead of `input_`
};

}  // namespace orrery
