// Chapter 9. Saving a training in files: what is written, and what is checked when it is read.
//
// Serves: nn/models/gpt.h
#include "apps/lm/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

const std::string recipe_key = "recipe", standing_key = "standing";  // in the metadata of FILE.resume

// Everything that is neither a tensor nor in the recipe. Before the first estimate, the best estimate is null.
Json standing_of(const LmOrigin& origin, const LmState& state) {
  return {{"text", origin.text},
          {"text_checksum", origin.text_checksum},
          {"tiles", origin.tiles},
          {"kernel", origin.kernel},
          {"seed", origin.recipe.seed},
          {"steps_done", state.steps_done},
          {"blocks", state.blocks},
          {"judged", state.judged},
          {"best_step", state.best_step},
          {"best_estimate", state.best_step > 0 ? Json(state.best_estimate) : Json(nullptr)}};
}

void read_standing(const std::string& text, LmCheckpoint& to) {
  constexpr std::string_view operation = "lm standing";
  constexpr i64 any = std::numeric_limits<i64>::max();
  const Json json = parse_json_object(text, operation);
  nn::config_json::Reader read(operation, json, nn::config_json::Fields::all);
  read("text", to.origin.text);
  read("text_checksum", to.origin.text_checksum, 0, std::numeric_limits<u32>::max());
  read("tiles", to.origin.tiles);
  read("kernel", to.origin.kernel);
  read("seed", to.origin.recipe.seed, 0, any);
  read("steps_done", to.state.steps_done, 0, to.origin.recipe.steps);
  read("blocks", to.state.blocks, 0, any);
  read("judged", to.state.judged, 0, any);
  read("best_step", to.state.best_step, 0, to.state.steps_done);
  if (to.state.best_step > 0) read("best_estimate", to.state.best_estimate);
}

}  // namespace

void LmFiles::begin(const std::string& text, bool overwrite) {
  if (!used()) return;
  check(!file_.writes(text), "lm", "--save ", model(), " would write over the text to learn, ", text);
  file_.claim("--save");
  file_.check_free(overwrite);
}

void LmFiles::check_room(i64 parameters) const {
  constexpr i64 copies = 5;  // of each number in the state: parameter, average, best, and AdamW's two moments
  const i64 model = parameters * bytes_of(f32);
  file_.check_room(model, copies * model);
}

void LmFiles::save_model(LmTraining& training) const {
  nn::save_gpt(training.model(), model(), {{std::string(alphabet_key), training.alphabet().text()}});
}

bool LmFiles::keep(const LmOrigin& origin, LmTraining& training) {
  return file_.keep([&] {
    // A training that is stopped before its first estimate also saves a model.
    if (training.best_step() == training.steps_done() || training.best_step() == 0) save_model(training);
    const LmState state = training.state();
    write_safetensors(resume(), state.tensors,
                      {{std::string(nn::config_key), nn::to_json(training.model().config)},
                       {recipe_key, to_json(origin.recipe)},
                       {standing_key, standing_of(origin, state).dump()}});
  });
}

bool LmFiles::end(LmTraining& training, bool finished) {
  return file_.keep([&] {
    save_model(training);
    std::error_code none;
    if (finished) std::filesystem::remove(resume(), none);
  });
}

LmModel load_lm(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  const auto found = metadata.find(std::string(alphabet_key));
  check(found != metadata.end(), "lm", path, " was not saved by orrery lm (it has no ", alphabet_key, ')');
  LmModel saved{within("load " + path, [&] { return Alphabet(found->second); }), nn::load_gpt(path)};
  check(saved.model.config.vocab_size == saved.alphabet.size(), "lm", path, " holds a model of ",
        saved.model.config.vocab_size, " tokens and an alphabet of ", saved.alphabet.size());
  return saved;
}

LmCheckpoint read_checkpoint(const LmFiles& files) {
  const std::string path = files.resume();
  check(std::filesystem::exists(path), "lm", "there is no ", path, ": the training of ", files.model(),
        " is finished, or was never started");
  TensorFile file = read_safetensors(path);
  const auto entry = [&](const std::string& key) {
    const auto found = file.metadata.find(key);
    check(found != file.metadata.end(), "lm", path, " is not an unfinished training (it has no ", key, ')');
    return found->second;
  };
  LmCheckpoint checkpoint;
  const std::string recipe = entry(recipe_key), config = entry(std::string(nn::config_key)),
                    standing = entry(standing_key);
  within("load " + path, [&] {
    checkpoint.origin.recipe = lm_recipe(recipe);
    checkpoint.origin.recipe.model = nn::gpt_config(config);
    read_standing(standing, checkpoint);
  });
  nn::check_size(checkpoint.origin.recipe.model.parameter_count(), path);
  checkpoint.state.tensors = std::move(file.tensors);
  return checkpoint;
}

}  // namespace orrery
