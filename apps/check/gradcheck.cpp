// Chapter 9. `orrery gradcheck`: the table of proofs, one row for each sample of an operation, a layer or a model.
//
// Three questions: is every derivative right (the table)? Would a wrong one be noticed (--mutate)? What does a classic
// mistake look like (--bug)? A sample that cannot be built or run is a failed row too, so one mistake does not hide the
// other rows.
// Serves: autograd/check/proof.h
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/check/bugs.h"
#include "apps/check/mutants.h"
#include "apps/check/seeds.h"
#include "apps/check/table.h"
#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/progress.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

struct CheckerOptions {
  std::vector<std::string> names;
  bool all = false;
  bool operations = false;
  bool list = false;
  bool mutate = false;
  std::string bug;
  std::string json;
  std::string seeds;
  std::string resume;
  i64 seed = 1;
  i64 threads = 1;
};

// Calls work(row, line) for each row until Ctrl-C, and shows its progress. Returns whether it was interrupted.
template <class Work>
bool for_each_row(const std::vector<Row>& rows, const Work& work) {
  const Interrupt interrupt;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  LiveLine live(std::cerr, terminal);
  size_t finished = 0;
  for (; finished < rows.size() && !interrupt.requested(); ++finished) {
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
    print_proof(std::cout, table.back(), terminal);
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
  if (wrong == 0 && static_cast<size_t>(empty) == table.size()) {
    std::cerr << nothing_checked;
    return failed;
  }
  return wrong == 0 ? done : failed;
}

MutatedRow mutate_row(const Row& row, i64 seed) {
  try {
    return {row, mutate(row.sample, static_cast<u64>(seed)), ""};
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

// Proves all of `rows`. Prints those that contain the mistake, and others only if they fail.
struct BugTally {
  size_t replaced = 0, replaced_wrong = 0, others_wrong = 0;
  bool stopped = false;
};
BugTally prove_with_bug(const std::vector<Row>& rows, const nn::Bug& bug, i64 seed) {
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  BugTally tally;
  print_proof_header(std::cout);
  tally.stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    const ProvenRow proven{row, prove(row.sample, {.mutants = false, .seed = static_cast<u64>(seed)})};
    const bool replaced = is_replaced(row, bug);
    if (replaced) ++tally.replaced;
    if (!proven.proof) ++(replaced ? tally.replaced_wrong : tally.others_wrong);
    if (proven.proof && !replaced) return;
    live.clear();
    print_proof(std::cout, proven, terminal);
  });
  return tally;
}

// Some mistakes give another function with correct derivatives. Such a mistake comes with a check of its own.
int run_own_check(const nn::Bug& bug, const BugTally& tally) {
  const std::string message = bug.check(), of_right_version = bug.check_right();
  if (tally.replaced_wrong == 0)
    std::cout << (tally.replaced > 0 ? "It passes: the derivatives are correct"
                                     : "No row contains it. Its derivatives are correct")
              << ", but of another function. The check that finds it:\n";
  std::cout << broken(message, 2) << broken("mistake: " + bug.mistake, 0);
  if (!of_right_version.empty()) std::cout << broken("the correct version fails as well: " + of_right_version, 2);
  const bool caught = !message.empty() && of_right_version.empty();
  std::cout << bug.name << (caught ? ": caught by a check of its own\n" : ": SURVIVED\n");
  if (tally.stopped) return interrupted;
  return caught ? done : failed;
}

// Every row of the function in question contains the mistake. The other rows are correct and must pass.
int run_bug(const CheckerOptions& options) {
  const nn::Bug& bug = find_bug(options.bug);
  const std::vector<Row> rows = chosen_rows(with_bug(all_rows(), bug), options.names);
  const auto holds_it = [&](const Row& row) { return is_replaced(row, bug); };
  if (!options.names.empty() && std::none_of(rows.begin(), rows.end(), holds_it))
    usage_error("--bug", "none of the chosen rows contains " + bug.name + "; choose " + rows_of(bug));
  print_start(std::cerr, {.seed = options.seed});
  std::cout << broken("hint: " + bug.hint, 0);
  if (bug.check) {
    std::vector<Row> holding;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(holding), holds_it);
    return run_own_check(bug, holding.empty() ? BugTally{} : prove_with_bug(holding, bug, options.seed));
  }
  const BugTally tally = prove_with_bug(rows, bug, options.seed);
  const bool caught = tally.replaced_wrong > 0;
  std::cout << broken("mistake: " + bug.mistake, 0) << bug.name << (caught ? ": caught, " : ": SURVIVED, ")
            << tally.replaced_wrong << " of the " << tally.replaced << (tally.replaced == 1 ? " row" : " rows")
            << " that contain it fail";
  if (tally.others_wrong > 0) std::cout << ", and " << tally.others_wrong << " that do not";
  std::cout << '\n';
  if (tally.stopped) return interrupted;
  return caught && tally.others_wrong == 0 ? done : failed;
}

int run(const CheckerOptions& options) {
  if (options.bug == "list" || options.bug == "LIST") {
    list_bugs(std::cout);
    return done;
  }
  if (!options.resume.empty() && options.seeds.empty()) usage_error("--resume", "is only for --seeds");
  const std::vector<Row> rows = chosen_rows(options.operations ? operation_rows() : all_rows(), options.names);
  if (options.list) {
    list_rows(std::cout, rows);
    return done;
  }
  check_can_write_text("gradcheck", "--json", options.json);
  check_can_write("gradcheck", "--resume", options.resume);
  set_threads(static_cast<int>(options.threads));
  if (!options.bug.empty()) return run_bug(options);
  if (!options.seeds.empty()) return prove_seeds(rows, options.names, seed_range(options.seeds), options.resume);
  print_start(std::cerr, {.seed = options.seed});
  return options.mutate ? mutate_rows(rows, options) : prove_rows(rows, options);
}

}  // namespace

void add_gradcheck(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<CheckerOptions>();
  CLI::App& command = add_command(
      program, "gradcheck", "Prove every derivative: against its function, in f64 and f32",
      "The gradients of each row in f32 must also equal those in f64, within 1e-6 of the largest of each leaf (column "
      "'f32'; beyond that, only proven rounding). The bits must be equal in 64 passes and for 1 to 16 threads; dL/dy = "
      "0 "
      "must give gradients of 0; for each choice of inputs, backward must add to an existing gradient; "
      "autograd/check/proof.h lists more. Layers and models are saved to a file and loaded again. 'error' is the worst "
      "|analytic - numeric|. It may reach 1e-9 + 1e-7 |numeric|, so compare it with 'norm'.\n"
      "Example:\n  orrery gradcheck softmax 'nn/*Attention'\n  orrery gradcheck --mutate softmax\n  orrery gradcheck "
      "--bug softmax-without-inner-product");
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
  CLI::Option* bug = add_text(command, "--bug", options->bug, "list|NAME",
                              "Build in this classic mistake: which check finds it? 'list' names all");
  CLI::Option* json = add_file(command, "--json", options->json, "Write the results to this file too, in full");
  exclude(mutate, {list});
  exclude(bug, {list, mutate});
  exclude(json, {list, bug});
  CLI::Option* seed = add_seed(command, options->seed);
  CLI::Option* seeds = add_text(command, "--seeds", options->seeds, "FIRST..LAST",
                                "Prove the rows with each of these seeds: none may fail");
  exclude(seeds, {seed, list, mutate, bug, json});
  add_file(command, "--resume", options->resume,
           "With --seeds: keep the results in this file, and continue after the last of them");
  add_whole_number(command, "--threads", options->threads, 1, 256,
                   "Threads; the results do not depend on them, and tiny tensors are fastest on one");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
