// Chapter 9. Tests of translators in files: they come back whole, and what does not fit is refused in one line.
#include "apps/tasks/translate/saved.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::translate;
using small::error_of;

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

TEST_CASE("a translator comes back from its file with the same words") {
  const TemporaryFolder folder;
  SavedTask saved(folder / "model");
  Translator loaded = load_translator(folder / "model");
  CHECK(loaded.vocabulary.to_json() == saved.data.vocabulary.to_json());
  CHECK(loaded.model->kind() == ModelKind::transformer);
  CHECK(loaded.model->config() == saved.task.model().config());
  CHECK(loaded.model->most_tokens() == saved.recipe.most_tokens + 1);
  std::vector<std::span<const i32>> sources;
  for (i64 i = 0; i < saved.data.training.size(); ++i) sources.push_back(saved.data.training.source[i]);
  const auto expected = greedy_translations(saved.task.model(), saved.data.vocabulary, sources);
  CHECK(expected.size() == sources.size());
  CHECK(greedy_translations(*loaded.model, loaded.vocabulary, sources) == expected);
  CHECK(greedy_translations(*loaded.model, loaded.vocabulary, {}).empty());
}

TEST_CASE("a file that is missing, cut short, damaged, or of another program is refused in one line") {
  const TemporaryFolder folder;
  const std::string path = folder / "model", other = folder / "other";
  SavedTask saved(path);
  CHECK(small::contains(refusal(folder / "nowhere"), "No such file"));
  const std::string whole = contents(path);
  for (const size_t length : {size_t{0}, size_t{7}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    set_contents(other, whole.substr(0, length));
    CHECK_FALSE(refusal(other).empty());
  }
  for (const size_t at : {size_t{3}, size_t{200}, whole.size() - 9}) {
    std::filesystem::remove(other);
    set_contents(other, whole);
    flip_bit(other, 8 * at);
    CHECK_FALSE(refusal(other).empty());
  }
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
