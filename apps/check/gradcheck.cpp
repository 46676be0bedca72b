// Chapter 9. `orrery gradcheck`: the table of proofs, one row for each sample of an operation, a layer or a model.
//
// Three questions: is every derivative right (the table)? Would a wrong one be noticed (--mutate)? By which symptoms is
// a classic mistake recognised (--bug)? A sample that cannot be built or run is a failed row too, so one mistake does
// not hide the other rows.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "apps/book/grade/grader.h"
#include "apps/check/bugs.h"
#include "apps/check/table.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "apps/program/terminal.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

using book::for_reader;

struct CheckerOptions {
  std::vector<std::string> names;
  bool all = false;
  bool operations = false;
  bool list = false;
  bool mutate = false;
  bool bugs = false;
  i64 bug = 0, hint = 0, reveal = 0;  // numbers; 0 where none is given
  std::string json;
  std::string seeds;
  i64 seed = 1;
  i64 threads = 1;
};

// Calls work(row, line) for each row until Ctrl-C, and shows its progress. Where each row is printed at once, it also
// ends when nobody can read them any more (gradcheck | head, or a full disk). Returns whether it was interrupted.
template <class Work> bool for_each_row(const std::vector<Row>& rows, const Work& work) {
  const Interrupt interrupt;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  LiveLine live(std::cerr, terminal);
  size_t finished = 0;
  for (; finished < rows.size() && !interrupt.requested() && std::cout.good(); ++finished) {
    live.show(std::to_string(finished + 1) + "/" + std::to_string(rows.size()) + " " + rows[finished].label());
    work(rows[finished], live);
    // If stderr is not a terminal, prints a line after every tenth of the rows, if there are many.
    const size_t tenth = (finished + 1) * 10 / rows.size(), tenth_before = finished * 10 / rows.size();
    if (!terminal.live && rows.size() >= 100 && tenth > tenth_before)
      std::cerr << "row " << finished + 1 << " of " << rows.size() << std::endl;
  }
  live.clear();
  if (interrupt.requested()) std::cerr << "stopped after " << finished << " of " << rows.size() << " rows\n";
  return interrupt.requested();
}

int prove_rows(const std::vector<Row>& rows, const CheckerOptions& options) {
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  std::vector<ProvenRow> table;
  size_t wrong = 0;
  print_proof_header(std::cout);
  const bool stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    table.push_back({row, prove(row.sample, {.mutants = false, .seed = static_cast<u64>(options.seed)})});
    if (!table.back().proof) ++wrong;
    live.clear();
    print_proof(std::cout, table.back(), terminal, table.back().proof.message());
  });
  print_zeros(std::cout, table);
  const auto empty = std::count_if(table.begin(), table.end(), [](const ProvenRow& row) {
    return row.proof && row.proof.gradients.coordinates == 0;
  });
  if (empty > 0)
    std::cout << empty << (empty == 1 ? " row has" : " rows have")
              << " inputs of size 0: there is nothing to check, except that it runs\n";
  std::cout << table.size() << " checked, " << wrong << " failed\n" << std::flush;
  if (!options.json.empty()) write_text(options.json, proofs_as_json(table, options.seed, rows.size()));
  if (stopped) return interrupted;
  if (wrong == 0 && !table.empty() && static_cast<size_t>(empty) == table.size()) {
    std::cerr << nothing_checked;
    return failed;
  }
  return wrong == 0 ? done : failed;
}

MutatedRow mutate_row(const Row& row, i64 seed) {
  try {
    MutationReport report = mutate(row.sample, static_cast<u64>(seed));
    const std::vector<Mutant> hidden = hidden_mutants(row.sample, static_cast<u64>(seed)).mutants;
    report.mutants.insert(report.mutants.end(), hidden.begin(), hidden.end());
    return {row, report, ""};
  } catch (const std::exception& error) { return {row, {}, error.what()}; }
}

int mutate_rows(const std::vector<Row>& rows, const CheckerOptions& options) {
  std::vector<MutatedRow> table;
  bool wrong = false;
  const bool stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    table.push_back(mutate_row(row, options.seed));
    wrong = wrong || !table.back().error.empty() || !table.back().report;
    live.clear();
    print_uncaught(std::cout, table.back());
  });
  print_mutants(std::cout, table);
  print_equivalent(std::cout, table);
  const MutantCount count = count_mutants(table);
  std::cout << count.mutants << " mutants, " << count.caught << " caught";
  if (count.rows_not_mutated > 0)
    std::cout << ", " << count.rows_not_mutated << (count.rows_not_mutated == 1 ? " row" : " rows") << " not mutated";
  std::cout << '\n' << std::flush;
  if (!options.json.empty()) write_text(options.json, mutants_as_json(table, options.seed, rows.size()));
  if (stopped) return interrupted;
  if (count.mutants == 0 && !wrong)
    std::cerr << "orrery: gradcheck: these rows have no backward that could be broken: nothing was tried\n";
  return wrong || count.mutants == 0 ? failed : done;
}

const std::string legend =
    "in: inputs   coords: numbers compared   error: the worst |analytic - numeric|, and where\n"
    "norm: of the gradient   kinks: numbers left out   zeros: inputs whose gradient must be 0\n"
    "f32: how far its gradient is from that of f64, relative to the largest\n";

// Prints what the mistake's own check finds, unless `shown`: the rows have said it already. Returns whether the check
// rejects the mistake and accepts the correct version.
bool show_own_check(const nn::Bug& bug, bool shown) {
  const std::string found = bug.check(), of_correct_version = bug.check_right();
  if (bug.leaks) {
    const nn::LeakReport report = bug.leaks();
    std::cout << for_reader("#: moves   .: does not move, and must not   -: does not move, but may   X: leak\n")
              << report;
    shown = shown || !report.ok();
  }
  if (bug.numbers) std::cout << told(bug.numbers(), 2);
  if (!shown) std::cout << for_reader("A check of its own:\n") << told(found, 2);
  if (!of_correct_version.empty()) std::cout << wrapped("the correct version fails as well: " + of_correct_version, 2);
  return !found.empty() && of_correct_version.empty();
}

// ", 1 of the 3 rows that contain it fails"
std::string failures_among(size_t wrong, size_t rows) {
  if (rows == 1) return wrong == 1 ? ", the one row that contains it fails" : ", the one row that contains it passes";
  return ", " + (wrong == 0 ? "none" : std::to_string(wrong)) + " of the " + std::to_string(rows) +
         " rows that contain it " + (wrong > 1 ? "fail" : "fails");
}

// "input 0 [2, 3], input 1 [3]": a symptom may depend on the sizes.
std::string shapes_of(const Sample& sample) {
  constexpr size_t most = 6;
  const Checkable checkable = sample.build(f64);
  std::ostringstream out;
  for (size_t i = 0; i < std::min(most, checkable.leaves.size()); ++i)
    out << (i == 0 ? "" : ", ") << checkable.leaves[i].name << ' ' << checkable.leaves[i].value.shape();
  if (checkable.leaves.size() > most) out << " and " << checkable.leaves.size() - most << " more";
  return out.str();
}

// The symptoms: what fails in the rows that contain the mistake, and what else finds it.
int show_bug(const CheckerOptions& options) {
  const nn::Bug& bug = bug_of(options.bug);
  const std::string number = std::to_string(options.bug);
  std::vector<Row> rows;
  for (const Row& row : chosen_rows(with_bug(all_rows(), bug), options.names))
    if (is_replaced(row, bug)) rows.push_back(row);
  if (!options.names.empty() && rows.empty())
    usage_error("--bug", "none of the chosen rows contains bug " + number + "; leave the names out");
  print_start(std::cerr, {.seed = options.seed});
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  size_t wrong = 0;
  if (!rows.empty()) {
    std::cout << for_reader(legend);
    print_proof_header(std::cout);
  }
  const bool stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    const ProvenRow proven{row, prove(row.sample, {.mutants = false, .seed = static_cast<u64>(options.seed)})};
    if (!proven.proof) ++wrong;
    live.clear();
    print_proof(std::cout, proven, terminal, for_reader(shapes_of(row.sample) + "\n" + symptoms(proven.proof)));
  });
  if (stopped) return interrupted;
  if (!std::cout) return done;  // not all rows were tried; if it is the disk that is full, the program says so
  if (rows.empty())
    std::cout << for_reader("No row of the table contains it, and no gradient check finds it.\n");
  else if (wrong == 0 && bug.check)
    std::cout << for_reader("Every row passes: no gradient check finds it.\n");
  const bool caught = bug.check ? show_own_check(bug, wrong > 0) : wrong > 0;
  std::cout << "bug " << number << ": " << for_reader(caught ? "caught" : "SURVIVED");
  if (!rows.empty()) std::cout << for_reader(failures_among(wrong, rows.size()));
  std::string next = "A hint: orrery gradcheck --hint " + number + "; the mistake: --reveal " + number;
  if (numbered_bug(options.bug).to_repair()) next += "; to repair it: apps/run exercise bug." + number;
  std::cout << '\n' << for_reader(next) << '\n';
  return caught ? done : failed;
}

int run(const CheckerOptions& options) {
  if (options.bugs) {
    list_bugs(std::cout);
    return done;
  }
  if (options.hint > 0) {
    std::cout << told(bug_of(options.hint).hint, 0);
    return done;
  }
  if (options.reveal > 0) {
    reveal_bug(std::cout, options.reveal);
    return done;
  }
  const std::vector<Row> rows = chosen_rows(options.operations ? operation_rows() : all_rows(), options.names);
  if (options.list) {
    list_rows(std::cout, rows);
    return done;
  }
  check_can_write_text("gradcheck", "--json", options.json);
  set_threads(static_cast<int>(options.threads));
  if (options.bug > 0) return show_bug(options);
  if (!options.seeds.empty()) return prove_seeds(rows, seed_range(options.seeds));
  print_start(std::cerr, {.seed = options.seed});
  return options.mutate ? mutate_rows(rows, options) : prove_rows(rows, options);
}

CLI::Option* add_bug(CLI::App& command, const std::string& name, i64& number, const std::string& description) {
  CLI::Option* option =
      add_whole_number(command, name, number, 1, static_cast<i64>(numbered_bugs().size()), description);
  show_default(option, "");
  return option;
}

constexpr const char* help_on_rows =
    "A row is an operation, a layer or a model. 'error' is the largest difference between its derivative and the "
    "numeric one, in f64. It may reach 1e-9 + 1e-7 |numeric|, so compare it with 'norm', the size of the gradient. "
    "'f32' is the largest difference between gradients in f32 and in f64, relative to the largest number of the "
    "gradient: at most 1e-6, or what rounding explains. The bits must be equal in 64 passes (4 for long tensors) "
    "and for up to 16 threads. dL/dy = 0 must give gradients of 0. Backward must add to a gradient that is there, "
    "and give the same gradients whichever inputs want one. Layers and models are also saved to a file and loaded "
    "again. autograd/check/proof.h lists all checks.\n"
    "Examples:\n  orrery gradcheck softmax 'nn/*Attention'\n  orrery gradcheck --mutate softmax\n  orrery gradcheck "
    "--bug 7";

}  // namespace

void add_gradcheck(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<CheckerOptions>();
  CLI::App& command =
      add_command(program, "gradcheck", "Prove every derivative: against its function, in f64 and f32", help_on_rows);
  CLI::Option* names = add_arguments(command, "NAME", options->names,
                                     "Rows, such as softmax, 'nn/*' or 'nn/Transformer, pre*'; without any: all");
  CLI::Option* all = add_flag(command, "--all", options->all, "Every row, as without a NAME");
  CLI::Option* operations =
      add_flag(command, "--operations", options->operations, "Every operation, no layer or model");
  exclude(all, {names, operations});
  exclude(operations, {names});
  CLI::Option* list = add_flag(command, "--list", options->list, "Print the names and variants, check nothing");
  CLI::Option* mutate =
      add_flag(command, "--mutate", options->mutate, "Break every backward in turn: does a check notice?");
  CLI::Option* bugs = add_flag(command, "--bugs", options->bugs, "List the numbers of the classic mistakes");
  CLI::Option* bug =
      add_bug(command, "--bug", options->bug, "The symptoms of this mistake: can you tell what is wrong?");
  CLI::Option* hint = add_bug(command, "--hint", options->hint, "A hint at this mistake");
  CLI::Option* reveal = add_bug(command, "--reveal", options->reveal, "This mistake in words, with its file and code");
  CLI::Option* json = add_output_file(command, "--json", options->json, "Write the results to this file too, in full");
  CLI::Option* seed = add_seed(command, options->seed);
  CLI::Option* seeds = add_text(command, "--seeds", options->seeds, "FIRST..LAST",
                                "Prove the rows with each of these seeds: none may fail");
  CLI::Option* threads = add_whole_number(
      command, "--threads", options->threads, 1, 256,
      "Threads of the checks of --bug that are no proofs; a proof runs on one, and tries up to 16 by itself");
  // What would have no effect beside an option is wrong usage, not ignored.
  exclude(mutate, {list});
  exclude(bug, {list, mutate, all, operations});
  exclude(json, {list, bug});
  exclude(seeds, {seed, list, mutate, bug, json});
  exclude(list, {seed, threads});
  for (CLI::Option* only : {bugs, hint, reveal})
    exclude(only, {names, all, operations, list, mutate, bug, json, seed, seeds, threads});
  exclude(reveal, {bugs, hint});
  exclude(bugs, {hint});
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
