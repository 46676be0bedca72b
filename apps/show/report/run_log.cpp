// Chapter 9. Reading logs line by line, and telling the files of trainings apart.
#include "apps/show/report/run_log.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/program/option_file.h"
#include "apps/program/output_file.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"

namespace orrery::run_report {
namespace {

// Ten lines a second for twelve days. A larger file is not a log.
constexpr u64 most_log_bytes = u64{1} << 30;
constexpr i64 most_steps = i64{1} << 53;

std::string text_of_log(const std::string& path) {
  const InputFile file(path);
  check(file.size() <= most_log_bytes, "report", path, " is too large for the log of a training");
  return file.text();
}

class LogReader {
 public:
  explicit LogReader(RunLog& log) : log_(log) {}

  // Returns false for a line that is not of a training's log.
  bool read(std::string_view text) {
    try {
      const Json line = parse_json_object(text, "report");
      if (line.contains("start")) return read_start(line);
      const i64 step = whole_number(line.at("step"), 0, most_steps, "report", "step");
      if (line.contains("steps")) return read_plan(line);
      if (line.contains("sample")) return read_sample(step, line.at("sample").get<std::string>());
      if (line.contains("score")) return read_score(line);
      return read_numbers(step, line);
    } catch (const Error&) { return false; } catch (const nlohmann::json::exception&) {
      return false;
    }
  }

 private:
  bool read_start(const Json& line) {
    const i64 after = whole_number(line.at("after_step"), 0, most_steps, "report", "after_step");
    const i64 steps = whole_number(line.at("steps"), 0, most_steps, "report", "steps");
    const i64 parameters = whole_number(line.at("parameters"), 0, most_steps, "report", "parameters");
    log_.program = line.at("start").get<std::string>();
    log_.steps = steps;
    log_.parameters = parameters;
    if (line.contains("unit")) log_.unit = line.at("unit").get<std::string>();
    if (line.contains("options")) log_.options = options_of(line.at("options").dump());
    begin_again(after);
    return true;
  }

  bool read_plan(const Json& line) {
    log_.steps = whole_number(line.at("steps"), 0, most_steps, "report", "steps");
    if (line.contains("options")) log_.options = options_of(line.at("options").dump());
    return true;
  }

  bool read_sample(i64 step, const std::string& text) {
    std::erase_if(log_.samples, [&](const LoggedSample& sample) { return sample.step >= step; });
    log_.samples.push_back({step, text.substr(std::min(text.find_first_not_of(' '), text.size()))});
    return true;
  }

  bool read_score(const Json& line) {
    const std::string name = line.at("score").get<std::string>();
    std::erase_if(log_.scores, [&](const NamedScore& score) { return score.name == name; });
    if (line.at("value").is_number()) log_.scores.push_back({name, line.at("value").get<double>()});
    return true;
  }

  bool read_numbers(i64 step, const Json& line) {
    const bool is_validation = line.contains("validation");
    if (!is_validation && !line.contains("loss")) return false;
    const double seconds = line.at("seconds").get<double>();
    if (!(seconds >= 0 && std::isfinite(seconds))) return false;
    if (seconds < last_seconds_) begin_again(step - 1);  // a start that the log does not tell of
    last_seconds_ = seconds;
    const auto add = [&](Curve& curve, const std::string& name) {
      if (!line.contains(name)) return;
      const Json& value = line.at(name);
      if (value.is_null()) ++log_.not_finite;
      if (!value.is_number()) return;
      while (!curve.empty() && curve.back().step >= step) curve.pop_back();
      curve.push_back({step, earlier_seconds_ + seconds, value.get<double>()});
    };
    if (is_validation) {
      log_.higher_is_better = line.contains("higher");
      if (log_.higher_is_better) log_.judged_by = line.at("higher").get<std::string>();
      add(log_.validation, "validation");
    } else {
      add(log_.loss, "loss");
      add(log_.rate, "rate");
      add(log_.units_per_second, "tokens_per_s");
    }
    return true;
  }

  // The training goes on after this step; what came later is made again.
  void begin_again(i64 after_step) {
    for (Curve* curve : {&log_.loss, &log_.validation, &log_.rate, &log_.units_per_second})
      while (!curve->empty() && curve->back().step > after_step) curve->pop_back();
    std::erase_if(log_.samples, [&](const LoggedSample& sample) { return sample.step > after_step; });
    earlier_seconds_ = log_.seconds();
    last_seconds_ = 0;
  }

  RunLog& log_;
  double earlier_seconds_ = 0, last_seconds_ = 0;
};

}  // namespace

Options options_of(const std::string& json) {
  Options options;
  const Json fields = parse_json_object(json, "report");
  for (const auto& [name, value] : fields.items())
    options.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  return options;
}

std::optional<CurvePoint> RunLog::best() const {
  const auto best =
      std::min_element(validation.rbegin(), validation.rend(), [&](const CurvePoint& a, const CurvePoint& b) {
        return higher_is_better ? a.value > b.value : a.value < b.value;
      });
  return best == validation.rend() ? std::nullopt : std::optional(*best);
}

i64 RunLog::last_step() const {
  return std::max(loss.empty() ? 0 : loss.back().step, validation.empty() ? 0 : validation.back().step);
}

double RunLog::seconds() const {
  return std::max(loss.empty() ? 0 : loss.back().seconds, validation.empty() ? 0 : validation.back().seconds);
}

RunLog read_run_log(const std::string& path) {
  const std::string text = text_of_log(path);
  check(!text.empty(), "report", path, " is empty");
  RunLog log{.path = path, .program = {}};
  LogReader reader(log);
  i64 lines = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++lines;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (!reader.read(line) && log.left_out++ == 0) log.first_left_out = lines;
    check(log.left_out < lines || lines < 100, "report", path, " is not the log of a training");
    begin = end + 1;
  }
  check(log.left_out < lines, "report", path, " is not the log of a training");
  log.is_cut_off = !text.ends_with('\n') && log.first_left_out == lines;
  return log;
}

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
