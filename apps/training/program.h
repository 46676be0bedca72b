// Chapter 9. The training program: begins, resumes, checks, reports and saves a training, whatever is trained.
//
// The command of a task is one class, which may be the task itself:
//   class Masked final : public TrainingProgram, public Task { ... };  // its options, its data, its losses
//   void add_masked(CLI::App& orrery, int& exit_code) {
//     add_training(orrery, exit_code, std::make_shared<Masked>(), "masked", "Learn masked words", "Example: ...");
//   }
// A new training calls, in this order: settle, check_given, read, fit (with --minutes), build, announce. One that is
// resumed takes the options that decide what is trained from its file, and calls settle, read, build, announce. Then
// the trainer makes its steps (apps/training/run.h), and report, the saving of the model, write_figures and end follow.
//
// --ranks: what a training program adds when several processes make its training together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/deadline.h"
#include "apps/training/options.h"
#include "apps/training/run.h"

namespace orrery {

class TrainingProgram {
 public:
  virtual ~TrainingProgram() = default;

  /// Its name, with which errors begin, and which FILE.resume keeps.
  virtual std::string program() const = 0;
  /// How it is typed.
  virtual std::string command() const { return "orrery " + program(); }
  /// Where the options put what they say of the recipe.
  virtual TrainingRecipe& recipe() = 0;

  /// Adds the options that decide what is trained, and no others; those that name texts are `text_options`, too. They
  /// take effect in this order, so that one that chooses a preset comes before those that change it.
  virtual void add_options(CLI::App& command) = 0;
  /// Adds options that decide how a run goes or what it writes.
  virtual void add_other_options(CLI::App&, const RunOptionHandles&) {}
  /// Something else than a training, if an option asks for it: its exit code.
  virtual std::optional<int> instead() { return std::nullopt; }

  /// Completes what the options say; names of files become absolute. Error: wrong usage, of options that contradict one
  /// another.
  virtual void settle() { check_recipe_options(recipe()); }
  /// Error: wrong usage, of a new training that lacks something.
  virtual void check_given() const {}
  /// What is learned from, and what is written besides model and log.
  virtual std::vector<NamedFile> texts() const { return {}; }
  virtual std::vector<NamedFile> figures() const { return {}; }
  /// Reads what is learned from. `kept` is what the file `path` says, from which the training goes on (--resume), or
  /// whose weights it starts from (--init); "" and nothing for others. The texts of a resumed one are those it began
  /// with.
  virtual void read(const std::string& /*path*/, const Metadata& /*kept*/) {}
  /// The number of parameters of the model that `build` makes.
  virtual i64 expected_parameters() const = 0;
  /// Makes the model, and what trains it; it lives as long as the program, or until the next call.
  virtual Task& build() = 0;
  /// Whether a model may lack the tensor of this name in the file of --init, or the other way round.
  virtual bool may_lack(const std::string& /*on_disk*/) const { return true; }
  /// The model has the weights of --init that fit.
  virtual void started() {}

  /// For --minutes: a training of this task that went well. Without one, the batch stays as it is.
  virtual std::optional<KnownTraining> known_training() { return std::nullopt; }
  /// Chooses what --minutes leaves open.
  virtual void fit(TimeBudget& budget);

  /// Says what is learned from. Nothing can refuse the training any more.
  virtual void announce() {}

  /// What the saved model says besides its options, and FILE.resume, for `read`: its configuration, its vocabulary.
  virtual Metadata of_model() const = 0;

  /// A line to print after an evaluation, of the judged parameters, such as a sample of what the model writes.
  /// `is_best`: they are the best so far.
  virtual std::string sample(bool /*is_best*/) { return ""; }
  virtual void after_step(const StepResult&) {}
  /// Seconds from the last step to the end of the command.
  virtual double seconds_afterwards(double /*seconds_of_step*/) { return 0; }
  /// Gives the model the parameters to save, judges it, and prints what it can do. This one keeps the best parameters,
  /// and prints the task's scores.
  virtual Score report(Trainer& trainer);
  virtual void write_figures() {}
  /// The last thing that a training does, if it is finished. Error: it has not reached what was asked for.
  virtual void end() {}

  RunOptions run;
  std::vector<CLI::Option*> text_options;         ///< those of the deciding options that may be given with --resume
  std::vector<CLI::Option*> also_fitted;          ///< those that --minutes chooses, besides the recipe's
  std::string fitted = "batch, rates and steps";  ///< what --minutes chooses, for its help
  Stopwatch watch;                                ///< of the whole command

  // Kept by the functions of this file.
  std::string options;               ///< the values of the deciding options, which files and log keep
  std::string origin;                ///< the texts and their checksums, which FILE.resume keeps
  double minutes = 0;                ///< 0: not given
  std::optional<Deadline> deadline;  ///< of --minutes
  double afterwards = 0;             ///< with a deadline: seconds for what follows the last step
  std::unique_ptr<Ranks> ranks = std::make_unique<Ranks>();  ///< of --ranks, or this process alone
};

/// Adds the sub-command `name` to `parent`, which trains `program`.
void add_training(CLI::App& parent, int& exit_code, const std::shared_ptr<TrainingProgram>& program,
                  const std::string& name, const std::string& description, const std::string& footer);

/// The same paths for another folder; "" stays.
std::string absolute_path(const std::string& path);

/// Gives `program` the processes of mpirun as its ranks, and returns what `train` returns on rank 0, which alone
/// prints, writes files and reports; 0 on the others. Unless threads or --max-memory are given, the ranks of a machine
/// share its cores and its memory. If `train` throws on some ranks alone, all end. Errors: those of `mpi_ranks`.
int run_on_ranks(TrainingProgram& program, bool threads_are_given, const std::function<int()>& train);

/// A step has a micro-batch for each rank, unless --micro-batches is given.
void give_each_rank_a_batch(TrainingProgram& program);

/// Error, the same on all ranks, before the first step: the ranks would not compute the same bits, since one has other
/// options, texts, parameters, kernels, or another program. It names the rank and what differs. With --sum fast, rank 0
/// warns of it.
void check_alike(const TrainingProgram& program, const Trainer& trainer);

/// Prints the warnings of other ranks that rank 0 did not have.
void share_warnings(Ranks& ranks);

}  // namespace orrery
