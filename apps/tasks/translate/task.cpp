// Chapter 9. Training a translator: presets, reading the text, batches and losses.
#include "apps/tasks/translate/task.h"

#include <filesystem>

#include "apps/program/stopwatch.h"
#include "apps/training/recipe.h"
#include "core/error.h"
#include "core/tensor.h"
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

template <class Model, class Config> std::unique_ptr<TranslationModel> built(const Config& config, Rng& weights) {
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

void TranslationRecipe::share_sizes() {
  recurrent.dropout = convolutional.dropout = model.layer.dropout;
  convolutional.d_embedding = recurrent.d_embedding;
  convolutional.num_encoder_layers = model.num_encoder_layers;
  convolutional.num_decoder_layers = model.num_decoder_layers;
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

namespace {

// Error, before they are read: the texts do not fit into memory with each line as it is in the file and in one
// spelling, which later become tokens. A file that is not there counts nothing: reading it is an error.
void check_memory_for(const TranslationFiles& files) {
  i64 bytes = 0;
  for (const std::string& path : {files.source, files.target, files.valid_source, files.valid_target}) {
    std::error_code not_there;
    const auto size = std::filesystem::file_size(path, not_there);
    if (!not_there) bytes += 2 * static_cast<i64>(size);
  }
  within(files.program + ": the text", [&] { Tensor::empty({bytes / bytes_of(f32)}); });
}

}  // namespace

TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary,
                                 const std::function<void(const std::string& what)>& tell) {
  recipe.validate();
  check_memory_for(files);
  const auto begin = [&](const std::string& what) {
    if (tell) tell(what);
  };
  begin("reading " + files.source + (files.columns ? "" : " and " + files.target));
  const Spelling spelling = !vocabulary || vocabulary->is_normalized() ? Spelling::normalized : Spelling::as_it_is;
  const i64 most_words = recipe.most_tokens + 1;  // of a table: whatever is cut off has a token too many
  const auto read = [&](const std::string& source, const std::string& target) {
    return files.columns ? read_pairs(source, *files.columns, most_words, spelling)
                         : read_pairs(source, target, spelling);
  };
  LinePairs all = read(files.source, files.target);
  SplitPairs held;
  if (files.hold_out()) {
    held = hold_out(all);
  } else {
    held.validation = read(files.valid_source, files.valid_target);
    held.training = std::move(all);
  }
  const auto new_vocabulary = [&] {
    const i64 most = files.columns ? most_words : recipe.most_tokens;
    const std::vector<std::string_view> lines = lines_to_learn(held.training, recipe.segmented, most);
    if (!recipe.segmented) begin("SentencePiece learns at most " + std::to_string(recipe.vocabulary) + " tokens");
    return recipe.segmented ? Vocabulary::of_segmented(lines) : Vocabulary::of_text(lines, recipe.vocabulary);
  };
  const Vocabulary used = vocabulary ? *vocabulary : new_vocabulary();
  const auto corpus = [&](const std::string& what, const LinePairs& pairs) {
    const TooLong too_long = files.columns ? TooLong::cut : TooLong::left_out;
    return within(what, [&] { return corpus_of(pairs, used, recipe.most_tokens, too_long); });
  };
  begin("cutting " + std::to_string(held.training.size() + held.validation.size()) + " pairs into tokens");
  TranslationData data{.vocabulary = used,
                       .training = corpus("pairs to train with", held.training),
                       .validation = corpus("pairs to validate with", held.validation),
                       .first_source = {},
                       .program = files.program};
  data.first_source = used.text(data.validation.source[0]);
  return data;
}

KnownTraining known_translator(TranslationRecipe& recipe, const TranslationData& data) {
  const Corpus& corpus = data.training;
  const bool is_transformer = recipe.kind == ModelKind::transformer;
  return {.batch = recipe.batch_tokens,
          .good_batch = 4096,
          .steps = is_transformer ? 12000 : 2400,
          .rate = is_transformer ? 0.003 : 0.012,
          .least_batch = recipe.most_tokens + 1,
          .items = static_cast<double>(std::max(corpus.source.tokens(), corpus.target.tokens()) + corpus.size()),
          .epochs = 100,
          .optimizer = is_transformer ? OptimizerKind::muon : OptimizerKind::adam};
}

namespace {

TranslationRecipe& checked(TranslationRecipe& recipe) {
  recipe.validate();
  return recipe;
}

}  // namespace

TranslationTask::TranslationTask(TranslationRecipe& recipe, const TranslationData& data,
                                 std::unique_ptr<TranslationModel> model)
    : recipe_(checked(recipe)),
      data_(data),
      training_(data.training, recipe.batch_tokens, random_numbers(recipe.seed, Purpose::training)),
      validation_(data.validation, recipe.batch_tokens, random_numbers(recipe.seed, Purpose::held_out)),
      model_(std::move(model)) {
  if (!model_)
    model_ = new_model(recipe.with_vocabulary(data.vocabulary.size()), random_numbers(recipe.seed, Purpose::weights));
  check(model_->vocabulary_size() == data.vocabulary.size(), program(), "the model has ", model_->vocabulary_size(),
        " tokens and the vocabulary ", data.vocabulary.size());
  recipe_.width = model_->d_model();
  if (recipe.evaluate_every == TranslationRecipe::automatic)
    recipe_.evaluate_every = (training_.in_epoch() + recipe.micro_batches - 1) / recipe.micro_batches;
}

std::string TranslationTask::translate(const std::string& line) const {
  const std::vector<i32> ids = data_.vocabulary.ids(line);
  check(static_cast<i64>(ids.size()) < model_->most_tokens(), program(), "the line has ", ids.size(),
        " tokens, more than the model's ", model_->most_tokens() - 1);
  return greedy_translations(*model_, data_.vocabulary, {ids})[0];
}

std::vector<Items> TranslationTask::draw(i64 step, i64 micro_batches) {
  drawn_.clear();
  std::vector<Items> items;
  for (i64 i = 0; i < micro_batches; ++i) {
    const TranslationBatch& batch = drawn_.emplace_back(training_.batch((step - 1) * micro_batches + i));
    items.push_back({batch.tokens, batch.source_tokens + batch.tokens});
  }
  return items;
}

BatchLoss TranslationTask::loss(i64 micro_batch, nn::Pass& pass) {
  return {model_->loss(drawn_[static_cast<size_t>(micro_batch)], pass,
                       {.ignore_index = pad_id, .label_smoothing = recipe_.smoothing})};
}

double TranslationTask::mean_items_read() const {
  const Corpus& corpus = data_.training;
  const i64 ends = 2 * corpus.size();  // each source and each target has an end mark
  return static_cast<double>(corpus.source.tokens() + corpus.target.tokens() + ends) /
         static_cast<double>(training_.in_epoch()) * static_cast<double>(recipe_.micro_batches);
}

Ranks::Numbers TranslationTask::judge(i64 batches, i64 first, i64 stride) const {
  const NoGradient nothing_recorded;
  const auto draw = [&](i64 i) { return first + i * stride; };
  const auto loss_and_tokens = [&](i64 number) {
    const TranslationBatch batch = validation_.sorted_batch(number);
    nn::Pass pass = nn::Pass::inference();
    const Variable sum = model_->loss(batch, pass, {.ignore_index = pad_id, .reduction = Reduction::sum});
    return Ranks::Numbers{sum.item(), static_cast<double>(batch.tokens)};
  };
  return judges().sums(batches, draw, loss_and_tokens);
}

double TranslationTask::validation_loss() const {
  const Ranks::Numbers sums = judge(validation_.in_epoch(), 0, 1);
  return sums[0] / sums[1];
}

// Tries ten batches on each rank. The batches are sorted by length, so that every n-th stands for all.
double TranslationTask::seconds_of_evaluation() {
  const i64 tried = 10 * judges().size();
  const i64 all = validation_.in_epoch(), stride = (all + tried - 1) / tried, first = stride / 2;
  double tokens = 0;
  const double seconds = seconds_of([&] { tokens = judge((all - first + stride - 1) / stride, first, stride)[1]; });
  return seconds * static_cast<double>(data_.validation.target.tokens() + data_.validation.size()) / tokens;
}

}  // namespace orrery::translate
