// Chapter 9. Keeping a training in files: what goes in, and what must be right when it comes out.
//
// Serves: nn/models/gpt.h
#include "apps/lm/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

const std::string recipe_key = "recipe", standing_key = "standing";  // in the metadata of FILE.resume

// All that is no tensor and no recipe. The best estimate is no number before there is one.
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

void read_standing(const Json& json, LmCheckpoint& to) {
  json.at("text").get_to(to.origin.text);
  json.at("text_checksum").get_to(to.origin.text_checksum);
  json.at("tiles").get_to(to.origin.tiles);
  json.at("kernel").get_to(to.origin.kernel);
  json.at("seed").get_to(to.origin.recipe.seed);
  json.at("steps_done").get_to(to.state.steps_done);
  json.at("blocks").get_to(to.state.blocks);
  json.at("judged").get_to(to.state.judged);
  json.at("best_step").get_to(to.state.best_step);
  if (to.state.best_step > 0) json.at("best_estimate").get_to(to.state.best_estimate);
}

// Whether `work` went well; if not, why.
template <class Work>
bool done_without(std::string& problem, const Work& work) {
  problem.clear();
  try {
    work();
  } catch (const Error& error) { problem = error.what(); }
  return problem.empty();
}

}  // namespace

void LmFiles::check_usable(const std::string& text, i64 parameters) const {
  if (!used()) return;
  for (const std::string& written : {model(), model() + ".tmp", resume(), resume() + ".tmp"}) {
    std::error_code absent;
    check(!std::filesystem::equivalent(written, text, absent), "lm", "--save ", model(),
          " would write over the text to learn, ", text);
  }
  check(!std::filesystem::exists(resume()), "lm", resume(),
        " keeps a training that is unfinished: go on with --resume ", model(), ", or remove it");
  const i64 bytes = parameters * bytes_of(f32);
  check_can_save("lm", model(), bytes);
  check_can_save("lm", resume(), 5 * bytes);
}

void LmFiles::save_model(LmTraining& training) const {
  nn::save_gpt(training.model(), model(), {{std::string(alphabet_key), training.alphabet().text()}});
}

bool LmFiles::keep(const LmOrigin& origin, LmTraining& training) {
  return !used() || done_without(problem_, [&] {
    // Whoever is stopped before the first estimate gets a model, too.
    if (training.best_step() == training.steps_done() || training.best_step() == 0) save_model(training);
    const LmState state = training.state();
    write_safetensors(resume(), state.tensors,
                      {{std::string(nn::config_key), nn::to_json(training.model().config)},
                       {recipe_key, to_json(origin.recipe)},
                       {standing_key, standing_of(origin, state).dump()}});
  });
}

bool LmFiles::end(LmTraining& training, bool finished) {
  return !used() || done_without(problem_, [&] {
    save_model(training);
    std::error_code none;
    if (finished) std::filesystem::remove(resume(), none);
  });
}

LmModel load_lm(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  const auto found = metadata.find(std::string(alphabet_key));
  check(found != metadata.end(), "lm", path, " was not saved by orrery lm (it has no ", alphabet_key, ')');
  LmModel saved{Alphabet(found->second), nn::load_gpt(path)};
  check(saved.model.config.vocab_size == saved.alphabet.size(), "lm", path, " holds a model of ",
        saved.model.config.vocab_size, " tokens and an alphabet of ", saved.alphabet.size());
  return saved;
}

LmCheckpoint read_checkpoint(const LmFiles& files) {
  const std::string path = files.resume();
  check(std::filesystem::exists(path), "lm", "there is no ", path, ": the training of ", files.model(),
        " has ended, or has never begun");
  TensorFile file = read_safetensors(path);
  const auto entry = [&](const std::string& key) {
    const auto found = file.metadata.find(key);
    check(found != file.metadata.end(), "lm", path, " is no unfinished training (it has no ", key, ')');
    return found->second;
  };
  LmCheckpoint checkpoint;
  checkpoint.origin.recipe = lm_recipe(entry(recipe_key));
  checkpoint.origin.recipe.model = nn::gpt_config(entry(std::string(nn::config_key)));
  nn::check_size(checkpoint.origin.recipe.model.parameter_count(), path);
  try {
    read_standing(Json::parse(entry(standing_key)), checkpoint);
  } catch (const Json::exception& error) { fail("lm", path, " is damaged: ", error.what()); }
  checkpoint.state.tensors = std::move(file.tensors);
  return checkpoint;
}

}  // namespace orrery
