// Chapter 9. The table of configurations; the step that is measured, and its batch, of the same form as the one that
// other frameworks get.
#include "apps/measure/bench/training.h"

#include <algorithm>

#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "core/tensor_ops.h"

namespace orrery {

std::span<const BenchConfig> bench_configs() {
  // clang-format off
  static const std::vector<BenchConfig> table{
      // name     vocabulary d_model heads encoder decoder d_ff  batch source target dropout
      {"toy",       16,      64,     4,    2,      2,      128,  64,   12,    12,    0.1, "the task of orrery toy"},
      {"annotated", 11,      512,    8,    2,      2,      2048, 80,   10,    9,     0.1, "the Annotated Transformer"},
      {"tiny-mt",   10000,   128,    4,    4,      4,      256,  128,  16,    16,    0.1, "a translator, Multi30k"},
      {"base",      8000,    512,    8,    6,      6,      2048, 32,   32,    32,    0.1, "the paper's base model"},
      {"nanogpt",   65,      128,    4,    0,      4,      512,  12,   0,     64,    0.0, "nanoGPT's recipe for a CPU"},
      {"gpt-mid",   65,      384,    6,    0,      6,      1536, 16,   0,     256,   0.1, "nanoGPT's for a GPU"},
      {"gpt2",      50257,   768,    12,   0,      12,     3072, 4,    0,     64,    0.0, "llm.c's default on a CPU"},
      {"long",      256,     256,    4,    0,      2,      1024, 1,    0,     4096,  0.0, "one long sequence"},
  };
  // clang-format on
  return table;
}

std::vector<std::string> bench_config_names() {
  std::vector<std::string> names;
  for (const BenchConfig& config : bench_configs()) names.push_back(config.name);
  return names;
}

const BenchConfig& bench_config(const std::string& name) {
  for (const BenchConfig& config : bench_configs())
    if (config.name == name) return config;
  fail("bench", "no configuration is called '", name, "'; there are: ", listed(bench_config_names()));
}

BenchConfig scaled(BenchConfig config, i64 batch, i64 length, i64 width) {
  std::string changed;
  const auto note = [&](const std::string& what, i64 value) {
    changed += (changed.empty() ? "" : ",") + what + '=' + std::to_string(value);
  };
  if (batch > 0) {
    config.batch = batch;
    note("B", batch);
  }
  if (length > 0) {
    if (!config.is_gpt()) config.source_length = length;
    config.target_length = length;
    note("T", length);
  }
  if (width > 0) {
    if (width % config.num_heads != 0)
      usage_error("--width", "must be a multiple of " + std::to_string(config.num_heads) + ", the heads of " +
                                 config.name + ", not " + std::to_string(width));
    config.d_ff = config.d_ff / config.d_model * width;
    config.d_model = width;
    note("d_model", width);
  }
  if (!changed.empty()) config.name += '[' + changed + ']';
  return config;
}

nn::TransformerConfig BenchConfig::transformer(double dropout) const {
  check(!is_gpt(), "bench", name, " is a GPT");
  return {.src_vocab_size = vocab_size,
          .tgt_vocab_size = vocab_size,
          .layer = {.d_model = d_model,
                    .num_heads = num_heads,
                    .d_ff = d_ff,
                    .dropout = dropout,
                    .attention_dropout = dropout,
                    .activation_dropout = dropout},
          .num_encoder_layers = num_encoder_layers,
          .num_decoder_layers = num_decoder_layers,
          .final_norm = true,
          .max_len = std::max(source_length, target_length),
          .pad_id = 0};
}

LanguageModelConfig BenchConfig::gpt(double dropout) const {
  check(is_gpt(), "bench", name, " is no GPT");
  return {.vocab_size = vocab_size,
          .layer = {.d_model = d_model,
                    .num_heads = num_heads,
                    .d_ff = d_ff,
                    .dropout = dropout,
                    .activation = nn::Activation::gelu},
          .num_layers = num_decoder_layers,
          .max_len = target_length};
}

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
