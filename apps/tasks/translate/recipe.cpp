// Chapter 9. Recipes of translators: presets, their models, and how they are kept as JSON.
#include "apps/tasks/translate/recipe.h"

#include "core/error.h"
#include "core/utf8.h"
#include "nn/models/config_json.h"

namespace orrery::translate {
namespace {

constexpr std::string_view recipe_operation = "translation recipe";

// What the presets begin with: the published recipe without model, rate and warm-up.
TranslationRecipe common_recipe(const nn::TransformerConfig& model) {
  TranslationRecipe recipe;
  recipe.model = model;
  recipe.optimizer = OptimizerKind::adam;
  recipe.beta1 = 0.9;
  recipe.beta2 = 0.98;
  recipe.eps = 1e-8;
  recipe.schedule = Schedule::inverse_sqrt;
  recipe.first_rate = 1e-7;
  recipe.micro_batches = 2;
  recipe.clip = 25;
  recipe.evaluate_every = TranslationRecipe::automatic;
  recipe.average_last = 10;
  recipe.patience = 10;
  return recipe;
}

TranslationRecipe published_recipe() {
  TranslationRecipe recipe = common_recipe(nn::tiny(first_piece_id + 1));
  recipe.steps = 8000;
  recipe.warmup = 2000;
  recipe.rate = 0.005;
  recipe.keep_last = true;
  return recipe;
}

// The same model with Muon, and a rate that falls to 0, so that no mean of parameters is needed. On Multi30k it sees a
// third of the tokens.
TranslationRecipe tiny_recipe() {
  TranslationRecipe recipe = common_recipe(nn::tiny(first_piece_id + 1));
  recipe.optimizer = OptimizerKind::muon;
  recipe.schedule = Schedule::constant;
  recipe.steps = 5200;
  recipe.warmup = 100;
  recipe.cooldown = 0.7;
  recipe.rate = 0.003;
  recipe.micro_batches = 1;
  recipe.clip = 1;
  recipe.average_last = 0;
  return recipe;
}

// Between tiny and base: fits a few hundred thousand pairs.
TranslationRecipe small_recipe() {
  nn::TransformerConfig model = nn::tiny(first_piece_id + 1);
  model.layer.d_model = 256;
  model.layer.d_ff = 1024;
  model.layer.dropout = 0.2;
  TranslationRecipe recipe = common_recipe(model);
  recipe.steps = 20000;
  recipe.warmup = 4000;
  recipe.rate = 0.001;
  return recipe;
}

// The paper's base model, with the peak of Noam's rate at 4,000 steps: 512^-0.5 4000^-0.5. Its step has more tokens.
TranslationRecipe base_recipe() {
  TranslationRecipe recipe = common_recipe(nn::base(first_piece_id + 1));
  recipe.eps = 1e-9;
  recipe.steps = 100000;
  recipe.warmup = 4000;
  recipe.rate = 0.0007;
  recipe.micro_batches = 6;
  return recipe;
}

// The published recipe for another model, with a lower rate, and gradients clipped at a small norm, as usual for
// recurrent models (Pascanu et al. 2013) and for this convolutional one (Gehring et al. 2017, section 4.2). The model
// with the lowest validation loss is kept, not the last one.
TranslationRecipe recipe_of_other(ModelKind kind) {
  TranslationRecipe recipe = published_recipe();
  recipe.kind = kind;
  recipe.rate = 0.002;
  recipe.clip = 1;
  recipe.keep_last = false;
  return recipe;
}

template <class Model, class Config>
std::unique_ptr<TranslationModel> built(const Config& config, Rng& weights) {
  return std::make_unique<TranslatorOf<Model>>(Model(config, weights));
}

}  // namespace

RecurrentTranslatorConfig tiny_recurrent() {
  return {.src_vocab_size = first_piece_id + 1,
          .tgt_vocab_size = first_piece_id + 1,
          .d_embedding = 128,
          .d_encoder = 128,
          .d_decoder = 256,
          .d_attention = 128,
          .d_output = 128,
          .dropout = 0.3,
          .pad_id = pad_id,
          .share_embeddings = true};
}

ConvolutionalTranslatorConfig tiny_convolutional() {
  return {.src_vocab_size = first_piece_id + 1,
          .tgt_vocab_size = first_piece_id + 1,
          .d_embedding = 128,
          .d_hidden = 128,
          .num_encoder_layers = 4,
          .num_decoder_layers = 4,
          .dropout = 0.3,
          .pad_id = pad_id,
          .share_embeddings = true};
}

const std::vector<std::string>& translation_preset_names() {
  static const std::vector<std::string> names{"tiny", "published", "small", "base"};
  return names;
}

TranslationRecipe translation_preset(const std::string& name) {
  if (name == "tiny") return tiny_recipe();
  if (name == "published") return published_recipe();
  if (name == "small") return small_recipe();
  check(name == "base", recipe_operation, "there is no preset ", printable(name));
  return base_recipe();
}

TranslationRecipe translation_preset(ModelKind kind) {
  return kind == ModelKind::transformer ? tiny_recipe() : recipe_of_other(kind);
}

TranslationRecipe TranslationRecipe::with_vocabulary(i64 size) const {
  TranslationRecipe result = *this;
  const auto fit = [size](auto& config) {
    config.src_vocab_size = config.tgt_vocab_size = size;
    config.pad_id = pad_id;
  };
  fit(result.model);
  fit(result.recurrent);
  fit(result.convolutional);
  result.model.max_len = result.recurrent.max_len = result.convolutional.max_len = most_tokens + 1;
  return result;
}

std::unique_ptr<TranslationModel> new_model(const TranslationRecipe& recipe, Rng weights) {
  switch (recipe.kind) {
    case ModelKind::recurrent: return built<RecurrentTranslator>(recipe.recurrent, weights);
    case ModelKind::convolutional: return built<ConvolutionalTranslator>(recipe.convolutional, weights);
    case ModelKind::transformer: break;
  }
  return built<nn::Transformer>(recipe.model, weights);
}

i64 TranslationRecipe::parameter_count() const {
  if (kind == ModelKind::recurrent) return recurrent.parameter_count();
  if (kind == ModelKind::convolutional) return convolutional.parameter_count();
  return model.parameter_count();
}

void TranslationRecipe::validate() const {
  using nn::config_json::check_positive;
  TrainingRecipe checked = *this;
  if (evaluate_every == automatic) checked.evaluate_every = 1;
  checked.validate();
  check_positive(recipe_operation, "most_tokens", most_tokens);
  check_positive(recipe_operation, "vocabulary", vocabulary);
  nn::config_json::check_probability(recipe_operation, "smoothing", smoothing);
  check(batch_tokens > most_tokens, recipe_operation, "batch_tokens (", batch_tokens,
        ") must be larger than most_tokens (", most_tokens, ")");
}

}  // namespace orrery::translate
