// Chapter 9. Writing the log of a training: its lines, and what is done with a log that is there already.
#include "apps/training/training_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

// Whether a file ends within a line, as that of a killed program may.
bool ends_within_line(const AppendedFile& file) {
  const u64 size = file.size();
  return size > 0 && file.read(size - 1, 1) != "\n";
}

// Enough for any line of a log, unless a sample is a book.
constexpr size_t piece = 1 << 16;

// How many zeros a file begins with: a power failure may leave them in place of what was not yet on the disk.
u64 zeros_before(const AppendedFile& file) {
  u64 zeros = 0;
  for (const u64 size = file.size(); zeros < size;) {
    const std::string part = file.read(zeros, piece);
    const size_t other = part.find_first_not_of('\0');
    if (other != part.npos) return zeros + other;
    if (part.empty()) break;  // somebody has cut the file
    zeros += part.size();
  }
  return zeros;
}

// Whether a file holds something other than a log, so that it must not be written over. Lines of a log may follow
// zeros and the rest of a line; without a whole line behind them it counts as something else.
bool holds_something_else(const AppendedFile& file) {
  const u64 zeros = zeros_before(file);
  if (zeros >= file.size()) return false;
  const std::string part = file.read(zeros, piece);
  const auto is_line_at = [&](size_t at) {
    const std::string_view text = std::string_view(part).substr(at);
    return text.starts_with(R"({"start":)") || text.starts_with(R"({"step":)");
  };
  return !is_line_at(0) && (zeros == 0 || !is_line_at(part.find('\n') + 1));  // if no line ends, both are 0
}

double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

}  // namespace

TrainingLog::TrainingLog(const std::string& path, Earlier earlier, Clock clock)
    : path_(path),
      continues_(earlier == Earlier::continued),
      clock_(std::move(clock)),
      start_(clock_()),
      step_begin_(start_) {
  if (path.empty()) return;
  file_.emplace(path);
  check(!holds_something_else(*file_), "log", path, " is not a training log; name another file, or remove it");
  check(earlier != Earlier::kept || file_->size() == 0, "log", path,
        " already holds a log: --overwrite replaces it, another name keeps both");
}

void TrainingLog::write(const Json& line) {
  if (!used()) return;  // an earlier line could not be written, as `end` will say
  try {
    if (!start_line_.empty()) {  // not before there is something to log: else the file stays as it is
      if (!continues_) file_->clear();
      if (ends_within_line(*file_)) file_->append("\n");
    }
    file_->append(start_line_ + json_text(line) + '\n');
    start_line_.clear();
  } catch (const Error& error) {
    problem_ = error.what();
    file_.reset();
  }
}

void TrainingLog::end() {
  write_left_out();
  try {
    if (file_) file_->close();
  } catch (const Error& error) { problem_ = error.what(); }
  file_.reset();
  check(problem_.empty(), "log", path_, " is not whole: ", problem_);
}

void TrainingLog::start(const Trainer& trainer, const std::string& options) {
  if (!used()) return;
  Json line{{"start", trainer.task().program()},
            {"after_step", trainer.steps_done()},
            {"steps", trainer.recipe().steps},
            {"parameters", trainer.parameter_count()},
            {"unit", trainer.task().unit()}};
  if (!options.empty()) line["options"] = parse_json_object(options, "options of the training");
  start_line_ = json_text(line) + '\n';
}

void TrainingLog::plan(const Trainer& trainer, const std::string& options) {
  write_left_out();
  if (!used()) return;
  Json line{{"step", trainer.steps_done()}, {"steps", trainer.recipe().steps}};
  if (!options.empty()) line["options"] = parse_json_object(options, "options of the training");
  write(line);
}

void TrainingLog::step(i64 step, const StepResult& result) {
  if (!used()) return;
  const double now = clock_();
  items_ += result.items;
  step_seconds_ += now - step_begin_;
  left_out_ = {step, result, now - start_};
  if (step == 1 || left_out_->seconds - last_ >= 0.1) write_left_out();
}

void TrainingLog::write_left_out() {
  if (!used() || !left_out_) return;
  const auto& [step, result, seconds] = *left_out_;
  Json line{{"step", step}, {"loss", result.loss}, {"rate", result.rate}};
  if (step_seconds_ > 0) line["tokens_per_s"] = std::llround(static_cast<double>(items_) / step_seconds_);
  line["seconds"] = rounded(seconds);
  write(line);
  last_ = seconds;
  step_seconds_ = 0;
  items_ = 0;
  left_out_.reset();
}

void TrainingLog::evaluation(i64 step, const std::vector<Score>& scores, bool best) {
  write_left_out();
  if (!used()) return;
  Json line{{"step", step}, {"validation", scores.at(0).value}, {"best", best}};
  if (scores[0].better == Better::higher) line["higher"] = scores[0].name;
  line["seconds"] = rounded(clock_() - start_);
  for (size_t i = 1; i < scores.size(); ++i) line["scores"][scores[i].name] = scores[i].value;
  write(line);
}

void TrainingLog::sample(i64 step, const std::string& text) {
  write_left_out();
  if (used()) write({{"step", step}, {"sample", text}});
}

void TrainingLog::score(i64 step, const std::string& name, double value) {
  write_left_out();
  if (used()) write({{"step", step}, {"score", name}, {"value", value}});
}

}  // namespace orrery
