// Chapter 9. What `orrery classify`, `tag` and `answer` share: the training of a BERT on labels, and the commands.
//
// A task says how its files are read and what its scores are; everything else is here, and in bert_training.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tasks/text_encoder.h"
#include "apps/training/task.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

class TrainingProgram;

/// A task in which a model learns labels.
class LabelTask {
 public:
  virtual ~LabelTask() = default;
  /// Its command, and the start of its errors.
  virtual std::string name() const = 0;
  /// BertHead::sentence or BertHead::token.
  virtual nn::BertHead head() const = 0;
  /// What is learned and what `train` is given, for the help.
  virtual std::string description() const = 0;
  virtual std::string example() const = 0;
  /// What `run` writes, for the help.
  virtual std::string answers() const = 0;
  /// Adds the options that say which columns of a file are read. Models keep them.
  virtual void add_columns(CLI::App& command) = 0;
  /// Whether texts are questions about stories. Their words are the tokens, each sentence is a segment, and the stories
  /// at the end of a file are held out of it.
  virtual bool has_stories() const { return false; }
  /// The rate with --init, if none is given.
  virtual const char* tuning_rate() const { return "5e-5"; }
  /// A line that somebody typed, as a text; without words if there is nothing in it to answer. `earlier` is what the
  /// task keeps of earlier lines. Nothing: the line is no text of its own.
  virtual std::optional<LabelledText> text_of(const std::string& line, std::vector<std::string>& earlier) const;
  /// The texts of a file, with their labels. Errors, naming file and row: a column is missing, a text is empty.
  virtual std::vector<LabelledText> read(const std::string& path) const = 0;
  /// The first score judges.
  virtual std::vector<Score> scores(const JudgedTexts& texts, const std::vector<std::string>& labels) const = 0;
  /// More about these, as a table of some lines.
  virtual std::string table(const JudgedTexts& texts, const std::vector<std::string>& labels) const = 0;
};

/// What `train` runs.
std::shared_ptr<TrainingProgram> label_training(std::shared_ptr<LabelTask> task);

/// Error of `task`: the file has so many labels that they must be something else.
void check_labels(const std::string& task, const std::string& path, size_t count);

/// Accuracy and the mean F1 of the labels; and how often each was taken for which, as some lines (classify.cpp).
std::vector<Score> label_scores(const JudgedTexts& texts, const std::vector<std::string>& labels);
std::string label_table(const JudgedTexts& texts, const std::vector<std::string>& labels);

/// The name of an answer; a word that was cut off is O, outside of everything.
std::string name_of(i32 label, const std::vector<std::string>& labels);

/// Warns of a model that gave the same answer to everything, though there are several labels.
void warn_of_one_answer(const LabelTask& task, const JudgedTexts& texts, const std::vector<std::string>& labels);

/// Adds the command of a task to `program`, with its sub-commands train, eval, run and export.
void add_label_task(CLI::App& program, int& exit_code, const std::shared_ptr<LabelTask>& task);

}  // namespace orrery
