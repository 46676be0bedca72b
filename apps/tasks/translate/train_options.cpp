// Chapter 9. The options of `orrery translate train`, and what they must fulfil together.
#include "apps/tasks/translate/train_options.h"

#include <algorithm>
#include <functional>

#include "apps/training/recipe_options.h"

namespace orrery::translate {
namespace {

std::vector<std::string> model_names() {
  const auto all = names(ModelKind{});
  return {all.begin(), all.end()};
}

// What --model changes. The Transformer is that of the preset.
void choose_model(TranslationRecipe& recipe, const std::string& name) {
  for (const ModelKind kind : {ModelKind::recurrent, ModelKind::convolutional})
    if (name == name_of(kind)) recipe = translation_preset(kind);
}

// Some options belong to several models. They are kept in the configuration of one, and the others take them over.
void share_options(TranslationRecipe& recipe) {
  recipe.recurrent.dropout = recipe.convolutional.dropout = recipe.model.layer.dropout;
  recipe.convolutional.d_embedding = recipe.recurrent.d_embedding;
  recipe.convolutional.num_encoder_layers = recipe.model.num_encoder_layers;
  recipe.convolutional.num_decoder_layers = recipe.model.num_decoder_layers;
}

// Wrong usage: options of another model than the one that is trained, which would have no effect.
void check_model_options(const TrainOptions& options) {
  const TranslationRecipe& recipe = options.recipe;
  for (const ModelOption& each : options.of_models)
    if (!each.is_of(recipe.kind) && is_given(each.option))
      usage_error(typed_name(each.option), "is no option of --model " + name_of(recipe.kind));
  if (recipe.convolutional.width % 2 == 0) usage_error("--width", "must be odd");
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0)
    usage_error("--heads", std::to_string(recipe.model.layer.num_heads) + " does not divide --d-model, " +
                               std::to_string(recipe.model.layer.d_model));
}

// Checks options that decide what is trained against each other, before the training starts.
void check_recipe(const TrainOptions& options) {
  const TranslationRecipe& recipe = options.recipe;
  if (options.preset != "tiny" && recipe.kind != ModelKind::transformer)
    usage_error("--preset " + options.preset, "is a Transformer, not a " + name_of(recipe.kind) + " model");
  check_model_options(options);
  if (recipe.batch_tokens <= recipe.most_tokens)
    usage_error("--batch-tokens", std::to_string(recipe.batch_tokens) + " is not above --max-tokens, " +
                                      std::to_string(recipe.most_tokens));
  TrainingRecipe known = recipe;
  if (known.evaluate_every == TrainingRecipe::automatic) known.evaluate_every = 1;
  check_recipe_options(known);
}

// Returns the options that name files of text.
std::vector<CLI::Option*> add_text_options(CLI::App& command, TrainOptions& options) {
  TranslationRecipe& recipe = options.recipe;
  begin_group(command, "Text");
  add_flag(command, "--segmented", recipe.segmented,
           "The text is segmented: tokens stand between spaces, and @@ at the end of one joins it to the next");
  add_whole_number(
      command, "--vocab-size", recipe.vocabulary, first_piece_id + 1, largest_vocabulary,
      "The most tokens that SentencePiece may find in text that is not segmented; it always uses 4 threads, "
      "since what it finds depends on their number");
  add_whole_number(command, "--max-tokens", recipe.most_tokens, 1, 65536,
                   "Tokens of the longest sentence; pairs with a longer one are left out");
  TranslationFiles& files = options.files;
  return {add_file(command, "--source", files.source, "Sentences to translate from, one a line"),
          add_file(command, "--target", files.target, "Their translations, one a line, in the same order"),
          add_file(command, "--valid-source", files.valid_source,
                   "Sentences to validate with; if not given, a twentieth of the pairs, 2,000 at most, is held out"),
          add_file(command, "--valid-target", files.valid_target, "Their translations")};
}

// Adds options by `add`, which only these models have.
void add_for(TrainOptions& options, CLI::App& command, const std::vector<ModelKind>& kinds,
             const std::function<void()>& add) {
  const auto before = static_cast<std::ptrdiff_t>(options_of(command).size());
  add();
  const std::vector<CLI::Option*> all = options_of(command);
  for (auto option = all.begin() + before; option != all.end(); ++option) options.of_models.push_back({*option, kinds});
}

void add_transformer_options(CLI::App& command, nn::TransformerConfig& model) {
  begin_group(command, "Transformer");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--attention-dropout", *model.layer.attention_dropout, 0, 0.99, "Dropout of attention weights");
  add_number(command, "--activation-dropout", *model.layer.activation_dropout, 0, 0.99,
             "Dropout inside feed-forward networks");
  add_switch(command, "norm-first", model.layer.norm_first, "Normalise before each sub-layer instead of after it");
  add_switch(command, "final-norm", model.final_norm, "One more normalisation after each stack");
}

void add_recurrent_options(CLI::App& command, RecurrentTranslatorConfig& model) {
  add_whole_number(command, "--d-encoder", model.d_encoder, 1, 12288,
                   "Recurrent: units of each direction of the encoder");
  add_whole_number(command, "--d-decoder", model.d_decoder, 1, 12288, "Recurrent: units of the decoder");
  add_whole_number(command, "--d-attention", model.d_attention, 1, 12288, "Recurrent: width of the keys");
  add_whole_number(command, "--d-output", model.d_output, 0, 12288,
                   "Recurrent: width of the layer before the logits; 0: no such layer, the logits come straight "
                   "from state, context and word");
}

void add_convolutional_options(CLI::App& command, ConvolutionalTranslatorConfig& model) {
  add_whole_number(command, "--d-hidden", model.d_hidden, 1, 12288, "Convolutional: width of the layers");
  add_whole_number(command, "--width", model.width, 1, 99,
                   "Convolutional: positions that each output sees, an odd number");
}

void add_model_options(CLI::App& command, TrainOptions& options) {
  using enum ModelKind;
  TranslationRecipe& recipe = options.recipe;
  nn::TransformerConfig& model = recipe.model;
  begin_group(command, "Model");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_for(options, command, {transformer, convolutional}, [&] {
    add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 96, "Encoder layers");
    add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 96, "Decoder layers");
  });
  add_for(options, command, {transformer}, [&] { add_transformer_options(command, model); });
  begin_group(command, "Recurrent and convolutional models");
  add_for(options, command, {recurrent, convolutional}, [&] {
    add_whole_number(command, "--d-embedding", recipe.recurrent.d_embedding, 1, 12288, "Width of the embeddings");
  });
  add_for(options, command, {recurrent}, [&] { add_recurrent_options(command, recipe.recurrent); });
  add_for(options, command, {convolutional}, [&] { add_convolutional_options(command, recipe.convolutional); });
}

void add_training_options(CLI::App& command, TranslationRecipe& recipe) {
  begin_group(command, training_group);
  add_whole_number(command, "--batch-tokens", recipe.batch_tokens, 1, 10000000,
                   "Tokens of a micro-batch, source or target, whichever has more, padding included; a step has "
                   "--micro-batches of them");
  add_number(command, "--smoothing", recipe.smoothing, 0, 0.999999, "Label smoothing");
  add_recipe_options(command, recipe, {.evaluate_every = "an epoch"});
  begin_group(command, evaluation_group);
  add_switch(command, "keep-last", recipe.keep_last,
             "End with the parameters of the last evaluation, not with those of the lowest loss");
}

}  // namespace

void settle(TrainOptions& options) {
  share_options(options.recipe);
  check_recipe(options);
  for (const ModelOption& each : options.of_models)
    if (!each.is_of(options.recipe.kind)) std::erase(options.run.deciding, each.option);
}

void check_files(const TrainOptions& options) {
  if (options.files.source.empty()) usage_error("--source", "is required: the file of sentences to translate from");
  if (options.files.target.empty()) usage_error("--target", "is required: the file of their translations");
  if (options.files.valid_source.empty() != options.files.valid_target.empty())
    usage_error("--valid-source, --valid-target", "must be given together");
}

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options) {
  // Added before the others, since options take effect in the order they are added: those change the preset.
  add_choice(command, "--preset", options->preset, translation_preset_names(),
             "A Transformer and its training by name: tiny for tens of thousands of pairs; published, the same model "
             "with Adam, as Wu et al. 2021 trained it; small for hundreds of thousands of pairs; base, the model of "
             "Attention Is All You Need, for millions; other options change it",
             [options](const std::string& name) { options->recipe = translation_preset(name); });
  add_choice(command, "--model", options->model, model_names(),
             "Which model: the Transformer, or one of those that it replaced, of the size of the preset tiny",
             [options](const std::string& name) { choose_model(options->recipe, name); });
  const std::vector<CLI::Option*> texts = add_text_options(command, *options);
  add_model_options(command, *options);
  add_training_options(command, options->recipe);
  add_run_options(command, options->run, texts);
}

}  // namespace orrery::translate
