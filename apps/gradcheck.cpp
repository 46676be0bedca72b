// Chapter 9. `orrery gradcheck`: the table of proofs, one row for each sample of an operation, a layer or a model.
//
// Three questions: is every derivative right (the table)? Would a wrong one be noticed (--mutate)? What does a classic
// mistake look like (--bug)? A sample that cannot even be built or run is a failed row too, so that one mistake does
// not hide the other rows.
// Read next: apps/gradcheck_rows.h
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/columns.h"
#include "apps/command.h"
#include "apps/gradcheck_bugs.h"
#include "apps/gradcheck_mutants.h"
#include "apps/gradcheck_table.h"
#include "apps/interrupt.h"
#include "apps/machine.h"
#include "apps/progress.h"
#include "core/parallel.h"

namespace orrery {
namespace {

struct Options {
  std::vector<std::string> names;
  bool all = false;
  bool list = false;
  bool mutate = false;
  std::string bug;
  std::string json;
  i64 seed = 1;
  i64 threads = 1;
};

// Calls work(row) for each row until Ctrl-C, with a live line on the way. Returns whether it was interrupted.
template <class Work>
bool for_each_row(const std::vector<Row>& rows, const Work& work) {
  const Interrupt interrupt;
  LiveLine live(std::cerr, terminal_of(STDERR_FILENO));
  size_t finished = 0;
  for (; finished < rows.size() && !interrupt.requested(); ++finished) {
    live.show(std::to_string(finished + 1) + "/" + std::to_string(rows.size()) + " " + rows[finished].label());
    work(rows[finished], live);
  }
  live.clear();
  if (interrupt.requested()) std::cerr << "stopped after " << finished << " of " << rows.size() << " rows\n";
  return interrupt.requested();
}

int prove_rows(const std::vector<Row>& rows, const Options& options) {
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
  if (!options.json.empty()) write_text(options.json, proofs_as_json(table, options.seed));
  std::cout << table.size() << " checked, " << wrong << " failed\n";
  if (stopped) return interrupted;
  return wrong == 0 ? done : failed;
}

MutatedRow mutate_row(const Row& row, i64 seed) {
  try {
    GradcheckOptions options = row.sample.options;
    options.seed = static_cast<u64>(seed);
    return {row, mutate(row.sample.build(f64), options), ""};
  } catch (const Error& error) { return {row, {}, error.what()}; }
}

int mutate_rows(const std::vector<Row>& rows, const Options& options) {
  std::vector<MutatedRow> table;
  bool wrong = false;
  const bool stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    table.push_back(mutate_row(row, options.seed));
    wrong = wrong || !table.back().error.empty() || !table.back().report;
    live.clear();
    print_survivors(std::cout, table.back());
  });
  print_mutants(std::cout, table);
  print_equivalent(std::cout, table);
  if (!options.json.empty()) write_text(options.json, mutants_as_json(table, options.seed));
  const MutantCount count = count_mutants(table);
  std::cout << count.mutants << " mutants, " << count.caught << " caught\n";
  if (stopped) return interrupted;
  return wrong ? failed : done;
}

// Some mistakes make another function with the right derivative: those bring a check of their own.
int run_own_check(const nn::Bug& bug) {
  const std::string message = bug.check(), of_right_version = bug.check_right();
  std::cout << "No row fails: the derivatives are right, but those of another function. What sees it:\n"
            << broken(message, 2) << broken("mistake: " + bug.mistake, 0);
  if (!of_right_version.empty()) std::cout << broken("the right version fails as well: " + of_right_version, 2);
  const bool caught = !message.empty() && of_right_version.empty();
  std::cout << bug.name << (caught ? ": caught by a check of its own\n" : ": SURVIVED\n");
  return caught ? done : failed;
}

// The whole table with the mistake built in; printed are the rows that fail, and those that ought to.
int run_bug(const Options& options) {
  const nn::Bug& bug = find_bug(options.bug);
  const std::vector<Row> rows = chosen_rows(with_bug(all_rows(), bug), options.names);
  std::cout << broken("hint: " + bug.hint, 0);
  if (bug.check) return run_own_check(bug);
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  size_t checked = 0, wrong = 0;
  print_proof_header(std::cout);
  const bool stopped = for_each_row(rows, [&](const Row& row, LiveLine& live) {
    const ProvenRow proven{row, prove(row.sample, {.mutants = false, .seed = static_cast<u64>(options.seed)})};
    ++checked;
    if (!proven.proof) ++wrong;
    if (proven.proof && !is_replaced(row, bug)) return;
    live.clear();
    print_proof(std::cout, proven, terminal);
  });
  std::cout << broken("mistake: " + bug.mistake, 0) << bug.name << (wrong > 0 ? ": caught, " : ": SURVIVED, ") << wrong
            << " of " << checked << (wrong == 1 ? " rows fails\n" : " rows fail\n");
  if (stopped) return interrupted;
  return wrong > 0 ? done : failed;
}

int run(const Options& options) {
  if (options.bug == "list" || options.bug == "LIST") {
    list_bugs(std::cout);
    return done;
  }
  const std::vector<Row> rows = chosen_rows(all_rows(), options.names);
  if (options.list) {
    list_rows(std::cout, rows);
    return done;
  }
  set_threads(static_cast<int>(options.threads));
  print_start(std::cerr, {.seed = options.seed});
  if (!options.bug.empty()) return run_bug(options);
  return options.mutate ? mutate_rows(rows, options) : prove_rows(rows, options);
}

}  // namespace

void add_gradcheck(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_command(
      program, "gradcheck", "Prove every derivative: against its function, in f64 and f32",
      "Each row is also proven to give its f64 gradients in f32 within 1e-6 of the largest, equal bits in two passes "
      "and with\n"
      "1, 2, 3 and 8 threads, and 0 for dL/dy = 0; layers and models are saved to a file and loaded again.\n"
      "Example:\n  orrery gradcheck softmax 'nn/*Attention'\n  orrery gradcheck --mutate softmax\n  orrery gradcheck "
      "--bug softmax-without-inner-product");
  CLI::Option* names = add_arguments(command, "NAME", options->names,
                                     "Rows, such as softmax, 'nn/*' or 'nn/Transformer, pre*'; without any: all");
  exclude(add_flag(command, "--all", options->all, "Every row, as without a NAME"), {names});
  CLI::Option* list = add_flag(command, "--list", options->list, "Print the names and variants, check nothing");
  CLI::Option* mutate =
      add_flag(command, "--mutate", options->mutate, "Break every backward in turn: does a check notice?");
  CLI::Option* bug = add_text(command, "--bug", options->bug, "list|NAME",
                              "Build this classic mistake in: which check finds it? 'list' names all");
  CLI::Option* json = add_text(command, "--json", options->json, "FILE", "Write the results to this file too, in full");
  exclude(mutate, {list});
  exclude(bug, {list, mutate});
  exclude(json, {list, bug});
  add_seed(command, options->seed);
  add_whole_number(command, "--threads", options->threads, 1, 256,
                   "Threads; the results do not depend on them, and tiny tensors are fastest on one");
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
