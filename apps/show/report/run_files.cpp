// Chapter 9. Telling files apart by what they hold, whatever their names.
#include "apps/show/report/run_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/program/option_file.h"
#include "apps/program/output_file.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"

namespace orrery::run_report {
namespace {

SavedModel model_in(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  SavedModel model{.path = path};
  const auto options = metadata.find(options_key);
  if (options != metadata.end()) model.options = within("load " + path, [&] { return options_of(options->second); });
  return model;
}

// Scores have the name of their metric: {"system": {"file": ..., "sacrebleu": {"score": 41.02, ...}, ...}}.
ScoreFile scores_of(const Json& system) {
  ScoreFile file{.path = system.at("file").get<std::string>(), .scores = {}};
  for (const auto& [name, metric] : system.items())
    if (metric.is_object() && metric.contains("score")) file.scores.push_back({name, metric.at("score").get<double>()});
  return file;
}

// Of the system, and of the baseline if there is one; none if the file holds no scores.
std::vector<ScoreFile> scores_in(const std::string& path) {
  try {
    const InputFile file(path);
    if (file.size() > most_json_bytes) return {};
    const Json all = parse_json_object(file.text(), "report");
    std::vector<ScoreFile> scores{scores_of(all.at("system"))};
    if (all.contains("baseline")) scores.push_back(scores_of(all.at("baseline")));
    return scores;
  } catch (const Error&) { return {}; } catch (const nlohmann::json::exception&) {
    return {};
  }
}

std::string lines_left_out(const RunLog& log) {
  const bool one = log.left_out == 1;
  return std::to_string(log.left_out) + (one ? " line is" : " lines are") + " damaged and left out (line " +
         std::to_string(log.first_left_out) + (one ? ")" : " is the first)");
}

void add_log(RunFiles& files, RunLog log) {
  const auto note = [&](const std::string& text) { files.notes.push_back(log.path + ": " + text + "."); };
  if (log.left_out > 0)
    note(log.left_out == 1 && log.is_cut_off ? "the last line is cut off and left out" : lines_left_out(log));
  if (log.not_finite > 0)
    note(std::to_string(log.not_finite) + (log.not_finite == 1 ? " loss is" : " losses are") + " not finite");
  if (log.loss.empty() && log.validation.empty()) note("no step is logged yet");
  files.logs.push_back(std::move(log));
}

void add_file(RunFiles& files, const std::string& path) {
  if (holds_model(path))
    files.models.push_back(model_in(path));
  else if (const std::vector<ScoreFile> scores = scores_in(path); !scores.empty())
    files.scores.insert(files.scores.end(), scores.begin(), scores.end());
  else
    add_log(files, read_run_log(path));
  files.paths.push_back(path);
}

void add_folder(RunFiles& files, const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code problem, unknown;
  std::filesystem::directory_iterator entry(folder, problem);
  for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem))
    if (entry->is_regular_file(unknown)) paths.push_back(entry->path().string());
  check(!problem, "report", "cannot read the folder ", folder, ": ", problem.message());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> others;
  for (const std::string& path : paths) {
    try {
      add_file(files, path);
    } catch (const Error&) { others.push_back(std::filesystem::path(path).filename().string()); }
  }
  check(others.size() < paths.size(), "report", folder, " holds no log of a training, and no model");
  if (others.empty()) return;
  std::string names = others[0];
  for (size_t i = 1; i < std::min<size_t>(others.size(), 5); ++i) names += ", " + others[i];
  files.notes.push_back("Left out of " + folder + ": " + names + (others.size() > 5 ? ", ..." : "") + ".");
}

}  // namespace

RunFiles read_run_files(const std::vector<std::string>& paths) {
  RunFiles files;
  for (const std::string& path : paths) {
    std::error_code absent;
    if (std::filesystem::is_directory(path, absent))
      add_folder(files, path);
    else
      add_file(files, path);
  }
  check(files.logs.size() <= most_logs, "report", "draws at most ", most_logs, " logs over each other, not ",
        files.logs.size());
  return files;
}

}  // namespace orrery::run_report
