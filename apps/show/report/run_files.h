// Chapter 9. What a training wrote, told apart: logs, models, and scores of translations.
#pragma once

#include <string>
#include <vector>

#include "apps/show/report/run_log.h"

namespace orrery::run_report {

/// A model or an unfinished training, as its file describes it.
struct SavedModel {
  std::string path;
  Options options{};  ///< of its training; empty if the file does not say
};

/// What `orrery translate score --json FILE` wrote.
struct ScoreFile {
  std::string path;  ///< of the translation
  std::vector<NamedScore> scores;
};

struct RunFiles {
  std::vector<RunLog> logs{};
  std::vector<SavedModel> models{};
  std::vector<ScoreFile> scores{};
  std::vector<std::string> notes{};  ///< what is left out or damaged, in a sentence each
  std::vector<std::string> paths{};  ///< of all files that were read
};

/// The most logs that one page draws over each other.
inline constexpr size_t most_logs = 8;

/// Reads files of these kinds, and folders of them, in which other files are left out. Errors: a file of no kind; a
/// folder without any; more than `most_logs` logs.
RunFiles read_run_files(const std::vector<std::string>& paths);

/// The report as one page for a browser, which needs no network and has no script: a table of the logs, their curves,
/// scores, samples and configurations. Options that differ stand out (report_page.cpp).
std::string report_page(const RunFiles& files);

}  // namespace orrery::run_report
