// Chapter 9. --ranks: who prints, what all ranks must have in common, and what becomes of a failure.
#include "apps/training/program.h"

#include <algorithm>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "apps/data/text_data.h"
#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "core/files/json.h"

namespace orrery {
namespace {

// Takes the place of a stream's buffer: remembers the beginning of what is written, and passes it on, or not.
class Heard final : public std::streambuf {
 public:
  Heard(std::ostream& stream, bool passes_on) : stream_(stream), before_(stream.rdbuf(this)), passes_on_(passes_on) {}
  ~Heard() override { stream_.rdbuf(before_); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  std::vector<std::string> warnings() const {
    std::vector<std::string> lines;
    std::istringstream text(text_);
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("warning: ")) lines.push_back(line);
    return lines;
  }

 private:
  static constexpr size_t enough = 1 << 16;
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::lock_guard lock(mutex_);  // a Phase tells from a thread of its own
    if (text_.size() < enough) text_.append(text, static_cast<size_t>(count));
    return passes_on_ ? before_->sputn(text, count) : count;
  }
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? traits_type::not_eof(c) : traits_type::eof();
  }
  int sync() override { return passes_on_ ? before_->pubsync() : 0; }

  std::ostream& stream_;
  std::streambuf* before_;
  bool passes_on_;
  std::mutex mutex_;
  std::string text_;
};

// A line for everything that a rank's bits depend on: its name, a tab, and its value. Those of the first kind are of
// its machine and its program.
std::string machine_lines() {
  std::ostringstream text;
  text << "program\t" << checksum_of({"/proc/self/exe"}) << "\nCPU level\t" << name_of(compiled_vector_level());
  if (uses_blas()) text << "\nOpenBLAS's kernel\t" << blas_info().kernel;
  if (uses_bf16()) text << "\nbf16\t" << bf16_arithmetic();
  return text.str();
}
std::string training_lines(const TrainingProgram& program, const Trainer& trainer) {
  std::ostringstream text;
  for (const std::string& options : {program.options, to_json(trainer.recipe())}) {
    const Json all = parse_json_object(options, "options");
    for (const auto& [name, value] : all.items()) text << "--" << name << '\t' << value.dump() << '\n';
  }
  if (!program.origin.empty())
    text << "the checksums of the texts\t" << parse_json_object(program.origin, "texts")["checksums"].dump() << '\n';
  text << "the parameters to begin with\t" << trainer.hash();
  return text.str();
}

// On these it depends what ranks exchange next, so they are compared before all else.
std::string run_lines(const TrainingProgram& program) {
  const RunOptions& run = program.run;
  std::ostringstream text;
  text << "--sum\t" << run.sum << "\n--minutes\t" << program.minutes << "\n--time-limit\t" << run.time_limit
       << "\n--print-config\t" << (run.print_config ? "given" : "nothing") << "\n--resume\t"
       << (run.resume.empty() ? "nothing" : "given");
  return text.str();
}

// "rank 2 differs from rank 0 in --seed: 2 instead of 1"; "" if all ranks have the same lines.
std::string difference(Ranks& ranks, const std::string& lines) {
  const std::vector<std::string> all = ranks.each_text(lines);
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& text) { return text != all[0]; });
  if (other == all.end()) return "";
  std::istringstream first(all[0]), second(*other);
  std::string one, two;
  do {
    one = two = "?\tnothing";
    std::getline(first, one);
    std::getline(second, two);
  } while (one == two);
  return ranks.name_of(other - all.begin()) + " differs from " + ranks.name_of(0) + " in " +
         two.substr(0, two.find('\t')) + ": " + two.substr(two.find('\t') + 1) + " instead of " +
         one.substr(one.find('\t') + 1);
}

}  // namespace

int run_on_ranks(TrainingProgram& program, bool threads_are_given, const std::function<int()>& train) {
  RunOptions& run = program.run;
  program.ranks = mpi_ranks(run.sum == "fast");
  Ranks& ranks = *program.ranks;
  const Machine machine = read_machine();
  const i64 sharing = ranks.on_this_host();
  if (!threads_are_given) run.threads = std::clamp<i64>(machine.cores / sharing, 1, run.threads);
  if (run.max_memory == 0) run.max_memory = (machine.memory.available / 10 * 9 / sharing) >> 20;  // MB
  if (!ranks.is_first()) run.save = run.log = run.new_folder = "";
  std::optional<Heard> out, errors;
  if (!ranks.is_first()) out.emplace(std::cout, false);
  errors.emplace(std::cerr, ranks.is_first());
  try {
    const std::string differs = difference(ranks, run_lines(program));
    check(differs.empty(), program.program(), differs);
    const int exit_code = train();
    return ranks.is_first() ? exit_code : done;
  } catch (...) {
    ranks.failed(message_of(std::current_exception()));
    if (ranks.is_first()) throw;
    return done;  // rank 0 says why
  }
}

void give_each_rank_a_batch(TrainingProgram& program) {
  const auto decides = [](const CLI::Option* option) {
    return typed_name(option) == "--micro-batches" && is_given(option);
  };
  i64& count = program.recipe().micro_batches;
  const std::vector<CLI::Option*>& options = program.run.deciding;
  if (std::none_of(options.begin(), options.end(), decides)) count = std::max(count, program.ranks->size());
}

void check_alike(const TrainingProgram& program, const Trainer& trainer) {
  Ranks& ranks = trainer.ranks();
  if (ranks.size() == 1) return;
  const std::string of_training = difference(ranks, training_lines(program, trainer));
  check(of_training.empty(), program.program(), of_training);
  const std::string of_machine = difference(ranks, machine_lines());
  check(of_machine.empty() || ranks.adds_fast(), program.program(), of_machine,
        ", so their bits would differ (--sum fast allows that)");
  if (!of_machine.empty()) std::cerr << "warning: " << of_machine << ", so their bits differ\n";
  const i64 count = trainer.recipe().micro_batches;
  std::cerr << ranks.size() << " ranks, " << count << " micro-batches in a step";
  if (!ranks.adds_fast())
    std::cerr << ": with --micro-batches " << count << ", up to " << count << " ranks have these bits";
  std::cerr << '\n';
}

void share_warnings(Ranks& ranks) {
  const auto* heard = dynamic_cast<const Heard*>(std::cerr.rdbuf());
  if (!heard) return;
  std::string text;
  for (const std::string& warning : heard->warnings()) text += warning + '\n';
  const std::vector<std::string> all = ranks.each_text(text);
  std::set<std::string> told;
  for (size_t r = 0; r < all.size(); ++r) {
    std::istringstream lines(all[r]);
    for (std::string line; std::getline(lines, line);)
      if (told.insert(line).second && r > 0) std::cerr << ranks.name_of(static_cast<i64>(r)) << ": " << line << '\n';
  }
}

}  // namespace orrery
