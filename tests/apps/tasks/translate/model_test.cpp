// Chapter 9. Tests of the models that can stand in a translator: each learns, is saved and loaded, translates, resumes;
// a file that does not fit is refused in one line.
#include "apps/tasks/translate/model.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::translate;
using small::AnimalTraining;
using small::error_of;
using small::Threads;

namespace {

constexpr std::array every_kind{ModelKind::transformer, ModelKind::recurrent, ModelKind::convolutional};

// The small recipe for each model; dropout is on.
TranslationRecipe small_recipe_of(ModelKind kind) {
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.kind = kind;
  recipe.recurrent = {.d_embedding = 11,
                      .d_encoder = 7,
                      .d_decoder = 13,
                      .d_attention = 9,
                      .d_output = 11,
                      .dropout = 0.1,
                      .share_embeddings = true};
  recipe.convolutional = {.d_embedding = 11,
                          .d_hidden = 15,
                          .num_encoder_layers = 2,
                          .num_decoder_layers = 2,
                          .dropout = 0.1,
                          .share_embeddings = true};
  return recipe;
}

std::vector<std::span<const i32>> training_sources(const TranslationData& data) {
  std::vector<std::span<const i32>> all;
  for (i64 i = 0; i < data.training.size(); ++i) all.push_back(data.training.source[i]);
  return all;
}

}  // namespace

TEST_CASE("each kind of model comes back from its file with the same loss and the same translations") {
  const TemporaryFolder folder;
  for (const ModelKind kind : every_kind) {
    CAPTURE(name_of(kind));
    AnimalTraining training(small_recipe_of(kind));
    const double before = training.task.validation_loss();
    training.train(10);
    CHECK(training.task.validation_loss() < before);
    const std::string path = folder / name_of(kind);
    TranslationModel& model = training.task.model();
    save_translator(model, training.data.vocabulary, path);
    Translator loaded = load_translator(path);
    CHECK(loaded.model->kind() == kind);
    CHECK(loaded.model->config() == model.config());
    CHECK(loaded.model->d_model() == model.d_model());
    CHECK(loaded.model->module().parameter_count() == model.module().parameter_count());
    const auto expected = greedy_translations(model, training.data.vocabulary, training_sources(training.data));
    CHECK(greedy_translations(*loaded.model, loaded.vocabulary, training_sources(training.data)) == expected);
  }
}

TEST_CASE("each kind of model learns invented sentences, and then writes them") {
  for (const ModelKind kind : every_kind) {
    CAPTURE(name_of(kind));
    TranslationRecipe recipe = small_recipe_of(kind);
    recipe.model.layer = {.d_model = 64, .num_heads = 4, .d_ff = 128, .dropout = 0};
    recipe.recurrent = {.d_embedding = 32, .d_encoder = 32, .d_decoder = 48, .d_attention = 32, .dropout = 0};
    recipe.convolutional = {
        .d_embedding = 32, .d_hidden = 48, .num_encoder_layers = 2, .num_decoder_layers = 2, .dropout = 0};
    recipe.batch_tokens = 300;
    recipe.micro_batches = 1;
    recipe.average_last = 0;
    recipe.smoothing = 0;
    recipe.schedule = Schedule::constant;
    recipe.rate = kind == ModelKind::transformer ? 0.003 : 0.01;
    recipe.steps = 120;
    recipe.warmup = 10;
    recipe.cooldown = 0.5;
    AnimalTraining training(recipe);
    while (!training.trainer.finished()) training.trainer.step();
    CHECK(training.trainer.losses()[0] > 2);
    CHECK(training.trainer.losses().back() < 0.1);
    const auto written =
        greedy_translations(training.task.model(), training.data.vocabulary, training_sources(training.data));
    i64 right = 0;
    for (i64 i = 0; i < training.data.training.size(); ++i)
      right += written[static_cast<size_t>(i)] == training.data.vocabulary.text(training.data.training.target[i]);
    CHECK(right >= training.data.training.size() - 1);
  }
}

TEST_CASE("recurrent and convolutional translators train to the same bits if they are resumed, with other threads") {
  for (const ModelKind kind : {ModelKind::recurrent, ModelKind::convolutional}) {
    CAPTURE(name_of(kind));
    const TranslationRecipe recipe = small_recipe_of(kind);
    AnimalTraining whole(recipe), first(recipe), second(recipe);
    whole.train(12);
    first.train(7);
    const Threads wanted(3);
    second.trainer.load_state(first.trainer.state());
    second.train(12);
    CHECK(second.trainer.hash() == whole.trainer.hash());
  }
}

TEST_CASE("the presets of the other models have a size like that of tiny") {
  const auto parameters = [](ModelKind kind) {
    return translation_preset(kind).with_vocabulary(9715).parameter_count();
  };
  CHECK(parameters(ModelKind::transformer) == 2'568'576);
  CHECK(parameters(ModelKind::recurrent) == 2'158'067);
  CHECK(parameters(ModelKind::convolutional) == 2'305'651);
  for (const ModelKind kind : every_kind) {
    const TranslationRecipe recipe = translation_preset(kind);
    recipe.validate();
    CHECK(recipe.kind == kind);
  }
}

TEST_CASE("no model writes more tokens than it was trained for") {
  for (const ModelKind kind : every_kind) {
    CAPTURE(name_of(kind));
    AnimalTraining training(small_recipe_of(kind));
    const TranslationModel& model = training.task.model();
    CHECK(model.most_tokens() == training.task.recipe().most_tokens + 1);
    const Tensor source = source_tensor({training.data.training.source[0]});
    CHECK_NOTHROW(model.decoder(source, model.most_tokens()));
    CHECK_THROWS_AS(model.decoder(source, model.most_tokens() + 1), Error);
  }
}

TEST_CASE("a model whose kind does not fit its configuration is refused") {
  const TemporaryFolder folder;
  AnimalTraining training(small_recipe_of(ModelKind::recurrent));
  const std::string path = folder / "model", other = folder / "other";
  save_translator(training.task.model(), training.data.vocabulary, path);
  const TensorFile file = read_safetensors(path);
  const auto refused_as = [&](ModelKind kind) {
    Metadata metadata = file.metadata;
    metadata[std::string(kind_key)] = name_of(kind);
    write_safetensors(other, file.tensors, metadata);
    return small::error_of([&] { load_translator(other); });
  };
  CHECK(refused_as(ModelKind::recurrent) == "");
  CHECK(small::contains(refused_as(ModelKind::transformer), "there is no field "));
  CHECK(small::contains(refused_as(ModelKind::convolutional), "there is no field "));
}

namespace {

struct SavedTask {
  explicit SavedTask(const std::string& path)
      : recipe(small::small_translation_recipe()), data(small::animal_data(recipe)), task(recipe, data) {
    save_translator(task.model(), data.vocabulary, path);
  }
  TranslationRecipe recipe;
  TranslationData data;
  TranslationTask task;
};

std::string refusal(const std::string& path) {
  return error_of([&] { load_translator(path); });
}

}  // namespace

TEST_CASE("a file that is missing, or of another program, is refused in one line") {
  const TemporaryFolder folder;
  const std::string path = folder / "model", other = folder / "other";
  SavedTask saved(path);
  CHECK(small::contains(refusal(folder / "nowhere"), "No such file"));
  auto& model = dynamic_cast<TransformerTranslator&>(saved.task.model()).model;
  nn::save(model, other, {{std::string(nn::config_key), nn::to_json(model.config)}});
  CHECK(small::contains(refusal(other),
                        other + " was not saved by orrery translate (it has no vocabulary); orrery inspect "));
}

TEST_CASE("a vocabulary that does not fit, or is none, and a model of an unknown kind are refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "model", other = folder / "other";
  const SavedTask saved(path);
  const TensorFile file = read_safetensors(path);
  const auto refused_with = [&](const std::string& key, const std::string& value) {
    Metadata metadata = file.metadata;
    REQUIRE(metadata.contains(key));
    metadata[key] = value;
    write_safetensors(other, file.tensors, metadata);
    return refusal(other);
  };
  CHECK(small::contains(
      refused_with("vocabulary", Vocabulary::of_segmented({"a b"}).to_json()),
      other + " holds a model of " + std::to_string(saved.data.vocabulary.size()) + " tokens and a vocabulary of 9"));
  CHECK(small::contains(refused_with("vocabulary", "abc"), "load " + other + ": vocabulary: "));
  CHECK(small::contains(refused_with("translation_model", "oracle"), "holds a model of an unknown kind, 'oracle'"));
  CHECK(small::contains(refused_with("config", "{}"), other));
}

TEST_CASE("a model whose source vocabulary or padding is not that of its vocabulary is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  const TranslationRecipe recipe = small::small_translation_recipe();
  const TranslationData data = small::animal_data(recipe);
  const auto refused_with = [&](const auto& change) {
    nn::TransformerConfig config = recipe.with_vocabulary(data.vocabulary.size()).model;
    config.share_embeddings = false;
    change(config);
    Rng rng(1);
    TransformerTranslator model{nn::Transformer(config, rng)};
    save_translator(model, data.vocabulary, path);
    return refusal(path);
  };
  CHECK(refused_with([](auto&) {}) == "");
  CHECK(
      small::contains(refused_with([](auto& config) { ++config.src_vocab_size; }),
                      " holds a model of " + std::to_string(data.vocabulary.size() + 1) + " tokens and a vocabulary"));
  CHECK(small::contains(refused_with([](auto& config) { config.pad_id = 4; }),
                        " holds a model whose padding is token 4; that of its vocabulary is 0"));
}
