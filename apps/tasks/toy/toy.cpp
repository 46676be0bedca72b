// Chapter 9. `orrery toy`: trains a small version of the paper's model to reverse, copy or sort.
//
// Then it examines the model on 1,000 sequences that the model has never seen, and prints five of the answers and the
// cross-attention of the sharpest head: for reverse an anti-diagonal, for copy a diagonal.
// Read next: the end
#include <unistd.h>

#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/output_file.h"
#include "apps/tasks/toy/figures.h"
#include "apps/tasks/toy/training.h"
#include "apps/training/program.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

constexpr i64 exam_size = 1000, answers_shown = 5;

// Some answers, right or wrong.
void print_answers(const ToyTask& task, const ToyExam& exam) {
  for (size_t i = 0; i < answers_shown; ++i) {
    const bool right = exam.answers[i] == task.answer(exam.sources[i]);
    std::cout << task.name << "  " << task.text(exam.sources[i]) << "  ->  " << task.text(exam.answers[i])
              << (right ? "" : "   wrong") << '\n';
  }
}

// Whether --attention asks for a page for a browser, and not for the data of a picture.
bool is_page(const std::string& path) { return path.ends_with(".html"); }

// Prints the cross-attention of the sharpest head for the first sequence of the exam; returns it for `orrery figure`.
std::string show_sharpest_head(const nn::Transformer& model, const ToyTask& task, const ToyExam& exam) {
  const AttentionFigure figure = sharpest_head(model, task, exam.sources[0]);
  std::cout << "\ncross-attention, decoder layer " << figure.layer << ", head " << figure.head
            << ": rows are written, columns read\n";
  print_attention(std::cout, figure);
  std::cout << '\n';
  return to_json(figure);
}

// 1 to 10, as the Annotated Transformer asks at its end.
void print_counting(const nn::Transformer& model, const ToyTask& task) {
  Sequence counting(static_cast<size_t>(std::min(task.max_length, task.symbols)));
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = task.first_symbol + static_cast<i32>(i);
  std::cout << task.name << "  " << task.text(counting) << "  ->  " << task.text(answers(model, task, {counting})[0])
            << '\n';
}

// `orrery toy`, and all that its options say.
class ToyProgram final : public TrainingProgram {
 public:
  std::string program() const override { return "toy"; }
  ToyRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  void add_other_options(CLI::App& command, const RunOptionHandles& handles) override;
  std::optional<int> instead() override;
  void settle() override;
  std::vector<NamedFile> figures() const override {
    return {{"--page", page_}, {"--attention", attention_}, {"--every-head", every_head_}, {"--losses", losses_}};
  }
  i64 expected_parameters() const override { return recipe_.config().parameter_count(); }
  Task& build() override { return task_.emplace(recipe_); }
  // The preset, without Noam's schedule. Twice as many steps gain nothing.
  std::optional<KnownTraining> known_training() override {
    if (recipe_.model.layer.d_model > 128) return std::nullopt;  // the rate is that of a small model
    return KnownTraining{.batch = recipe_.batch,
                         .good_batch = 64,
                         .steps = 3000,
                         .rate = 0.006,
                         .least_batch = 16,
                         .items = 2 * 3000 * 64,
                         .epochs = 1,
                         .optimizer = OptimizerKind::adam};
  }

  Metadata of_model() const override { return metadata_of(task_->model, recipe_.task); }
  void after_step(const StepResult& step) override {
    if (!losses_.empty()) steps_.push_back(step);
  }
  double seconds_afterwards(double) override;
  Score report(Trainer& trainer) override;
  void write_figures() override;
  void end() override {
    check(static_cast<double>(right_) >= require_ * exam_size, "toy", "fewer answers are correct than --require ",
          require_, " demands");
  }

 private:
  void add_task_options(CLI::App& command);
  void add_model_options(CLI::App& command);

  ToyRecipe recipe_;
  std::string preset_ = "small", load_, page_, attention_, every_head_, losses_;
  double require_ = 0;
  std::optional<ToyTrainingTask> task_;
  std::vector<StepResult> steps_;  // for --losses
  i64 right_ = 0;                  // of the answers in the exam
  // "" if the model was not examined to the end.
  std::string shown_page_, shown_attention_, shown_every_head_;
};

// With a saved model: its page, or its answers.
std::optional<int> ToyProgram::instead() {
  if (load_.empty()) return std::nullopt;
  if (page_.empty()) return answer_lines(load_);
  check_can_write_text("toy", "--page", page_);
  SavedToy saved = load_toy(load_);
  write_text(page_, toy_page(saved.model, saved.task));
  return done;
}

// A part of the exam is tried.
double ToyProgram::seconds_afterwards(double) {
  constexpr i64 tried = 50;
  return seconds_of([&] { examine(task_->model, recipe_.task, tried, recipe_.seed); }) * exam_size / tried;
}

// Examines the best model, or the last one where the training has no evaluations, on sequences it has never seen.
Score ToyProgram::report(Trainer& trainer) {
  const nn::Transformer& model = task_->model;
  const double trained = watch.seconds();
  const std::string hash = trainer.hash();
  trainer.end_with_best();
  const auto print_hash = [&] {
    if (run.hash) std::cout << "hash " << hash << '\n';
  };
  ToyExam exam;
  try {
    exam = examine(model, recipe_.task, exam_size, recipe_.seed);
  } catch (const Error& error) {  // the training diverged, and the model has no finite scores
    print_hash();
    std::cout << "it cannot answer: " << error.what() << std::endl;
    throw;
  }
  const double decoded = watch.seconds() - trained;
  right_ = exam.right;
  print_answers(recipe_.task, exam);
  if (recipe_.task.begin_is_symbol) print_counting(model, recipe_.task);
  shown_attention_ = show_sharpest_head(model, recipe_.task, exam);
  if (is_page(attention_))
    shown_attention_ =
        attention_page(model, recipe_.task, {exam.sources.begin(), exam.sources.begin() + answers_shown}).html();
  print_hash();
  std::cout << "exact match " << right_ << '/' << exam_size << ", trained in " << std::fixed << std::setprecision(1)
            << trained << " s, decoded in " << decoded << " s" << std::endl;
  if (!page_.empty()) shown_page_ = toy_page(task_->model, recipe_.task);
  if (!every_head_.empty()) shown_every_head_ = to_json(every_head(model, recipe_.task, exam.sources[0]));
  return {"exact match", static_cast<double>(right_) / exam_size, Better::higher};
}

void ToyProgram::write_figures() {
  const auto save = [](const std::string& path, const std::string& data) {
    if (!path.empty() && !data.empty()) write_text(path, data);
  };
  save(losses_, to_json(loss_curve(recipe_, steps_)));
  save(page_, shown_page_);
  save(attention_, shown_attention_);
  save(every_head_, shown_every_head_);
}

// Checks options against each other, before the training starts.
void ToyProgram::settle() {
  const ToyTask& task = recipe_.task;
  if (task.min_length > task.max_length) {
    usage_error("--min-length",
                std::to_string(task.min_length) + " is above --max-length, " + std::to_string(task.max_length));
  }
  if (task.end < 0 && task.min_length < task.max_length) {
    usage_error("--min-length", "must equal --max-length, " + std::to_string(task.max_length) +
                                    ", with --preset annotated, whose answers have no end mark");
  }
  if (task.begin_is_symbol && task.name == "reverse")
    usage_error("--task", "reverse is not for --preset annotated, whose answers begin with symbol 1");
  check_heads(recipe_.model.layer);
  check_recipe_options(recipe_);
  try {
    Rng rng(static_cast<u64>(recipe_.seed));
    for (const bool held_out : {false, true}) task.draw(rng, held_out);
  } catch (const Error& error) { usage_error("--symbols, --max-length", error.rule()); }
  // All heads together have more weights than a picture or a page holds, for long sequences.
  const i64 weights = attention_weights(recipe_.model, task.source_length(), task.target_length() - 1);
  const auto check_room = [&](const std::string& option, i64 most) {
    if (weights > most)
      usage_error(option, "takes at most " + std::to_string(most) + " weights, not the " + std::to_string(weights) +
                              " of these layers, heads and lengths");
  };
  if (!every_head_.empty()) check_room("--every-head", most_head_weights);
  if (is_page(attention_)) check_room("--attention", AttentionPage::most_weights);
  const std::string refused = page_.empty() ? "" : refused_by_page(recipe_.config(), task);
  if (!refused.empty()) usage_error("--page", refused);
}

void ToyProgram::add_task_options(CLI::App& command) {
  ToyTask& task = recipe_.task;
  begin_group(command, "Task");
  add_choice(command, "--task", task.name, {"reverse", "copy", "sort"}, "What to do with a sequence");
  add_whole_number(command, "--symbols", task.symbols, 2, 1000, "How many different symbols there are");
  add_whole_number(command, "--min-length", task.min_length, 1, 512, "Shortest sequence");
  add_whole_number(command, "--max-length", task.max_length, 1, 512, "Longest sequence");
}

void ToyProgram::add_model_options(CLI::App& command) {
  nn::TransformerConfig& model = recipe_.model;
  begin_group(command, "Model");
  add_fields(command, model,
             {"d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff", "dropout",
              "attention_dropout", "activation_dropout", "norm_first", "final_norm"});
}

void ToyProgram::add_options(CLI::App& command) {
  // Before the others, which change the preset.
  add_choice(command, "--preset", preset_, {"small", "annotated"},
             "The defaults below, or the copy task of the Annotated Transformer (d_model 512, 400 steps)",
             [this](const std::string& name) {
               if (name == "annotated") recipe_ = annotated_recipe();
             });
  add_task_options(command);
  add_model_options(command);
  begin_group(command, training_group);
  also_fitted = {add_whole_number(command, "--batch", recipe_.batch, 1, 65536, "Sequences in a batch")};
  add_number(command, "--smoothing", recipe_.smoothing, 0, 0.999999, "Label smoothing");
  add_recipe_options(command, recipe_);
}

void ToyProgram::add_other_options(CLI::App& command, const RunOptionHandles& handles) {
  CLI::Option* page = add_output_file(
      command, "--page", page_,
      "Write a page for a browser in which the trained model itself runs: it answers what you type, shows every head, "
      "and what breaks without some; with --load, write that of the saved model, and answer nothing");
  exclude(add_output_file(
              command, "--losses", losses_,
              "Write the loss and the accuracy of each step to this file, for orrery figure toy_loss --data; not "
              "with --resume"),
          {handles.resume});
  add_output_file(
      command, "--attention", attention_,
      "Write the weights of the sharpest head to this file, for orrery figure attention --data; a name that ends "
      "in .html gets a page for a browser with every head");
  add_output_file(command, "--every-head", every_head_,
                  "Write the weights of every head to this file, for orrery figure toy_heads --data");
  add_number(command, "--require", require_, 0, 1, "Exit with 1 if a smaller share of the answers is correct");
  std::vector<CLI::Option*> for_training = options_of(command);
  std::erase(for_training, handles.threads);
  std::erase(for_training, page);
  exclude(take_folders(add_file(command, "--load", load_,
                                "Do not train: answer each line of stdin with the model in this file, or in the folder "
                                "of --save FOLDER/. Only --threads and --page may be given as well")),
          for_training);
}

}  // namespace

void add_toy(CLI::App& program, int& exit_code) {
  add_training(program, exit_code, std::make_shared<ToyProgram>(), "toy",
               "Train a small version of the paper's model to reverse, copy or sort",
               "Examples:\n  orrery toy --task sort --seed 3\n  orrery toy --save reverse.safetensors\n"
               "  orrery toy --load reverse.safetensors --page reverse.html\n"
               "  echo headache | orrery toy --load reverse.safetensors");
}

}  // namespace orrery
