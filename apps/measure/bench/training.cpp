// Chapter 9. The step that is measured, and its batch, of the same form as the one that other frameworks get.
#include "apps/measure/bench/training.h"

#include "apps/program/machine.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr i32 pad = 0;
constexpr i64 first_word = 3;  // 0, 1 and 2 stand for padding, begin and end
constexpr i64 short_every = 10, short_by = 2;
constexpr double label_smoothing = 0.1;

// i32 [batch, length]. In an encoder-decoder, rows 0, 10, 20, ... end with padding, after at least one word.
Tensor random_tokens(const BenchConfig& config, i64 length, Rng& rng) {
  Tensor tokens = randint(first_word, config.vocab_size, {config.batch, length}, rng);
  if (config.is_gpt()) return tokens;
  const i64 padding = std::min(short_by, length - 1);
  i32* token = tokens.write<i32>();
  for (i64 row = 0; row < config.batch; row += short_every)
    std::fill_n(token + (row + 1) * length - padding, padding, pad);
  return tokens;
}

// Error, before the model is made: its parameters do not fit into memory.
template <class Model, class Config> Model fitting(const Config& config, Rng& rng) {
  check_parameters_fit("bench", config.parameter_count());
  return Model(config, rng);
}

std::variant<nn::Transformer, LanguageModel> model_of(const BenchConfig& config, double dropout, Rng& rng) {
  if (config.is_gpt()) return fitting<LanguageModel>(config.gpt(dropout), rng);
  return fitting<nn::Transformer>(config.transformer(dropout), rng);
}

}  // namespace

BenchTraining::BenchTraining(const BenchConfig& config, double dropout, i64 seed)
    : seed_(static_cast<u64>(seed)),
      rng_(seed_),
      model_(model_of(config, dropout, rng_)),
      adam_(std::visit([](auto& model) { return model.parameters(); }, model_),
            {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9}),
      source_(random_tokens(config, config.source_length, rng_)) {
  if (!config.is_gpt()) loss_options_ = {.ignore_index = pad, .label_smoothing = label_smoothing};
  const Tensor target = random_tokens(config, config.target_length + 1, rng_);
  input_ = slice(target, 1, 0, -1);
  labels_ = slice(target, 1, 1);
}

Variable BenchTraining::loss() const {
  nn::Pass pass = nn::Pass::training(seed_, steps_begun_);
  if (const LanguageModel* gpt = std::get_if<LanguageModel>(&model_))
    return gpt->loss(input_, labels_, pass, loss_options_);
  return std::get<nn::Transformer>(model_).loss(source_, input_, labels_, pass, loss_options_);
}

double BenchTraining::pass(double dy) {
  ++steps_begun_;
  const Variable now = loss();
  backward(now, full({}, dy));
  return now.item();
}

void BenchTraining::update() { adam_.step(bench_learning_rate, bench_max_norm); }

}  // namespace orrery
