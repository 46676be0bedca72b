// Chapter 9. The table of proofs and that of mutants, as text of 100 columns and as JSON: their rows, chosen by name.
//
// Mutants are wrong backwards of each operation: how many, and which check caught them. `orrery gradcheck --seeds
// 1..1000` asks if correct code is ever reported as wrong, for any random numbers: every row is proven with every seed,
// except the parts of a proof that no random number can make fail (ProofOptions::exact). A run that is stopped says
// which seeds are left. Hidden: mutants that a single pass does not show.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/program/terminal.h"
#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "autograd/check/proof.h"
#include "autograd/observer.h"

namespace orrery {

/// A sample with its name in the table, which is "nn/..." for layers and models, and "rivals/..." for
/// those of apps/tasks/translate/rivals/.
struct Row {
  std::string name;
  Sample sample;
  /// "softmax, one element"
  std::string label() const;
};

/// Every operation, layer and model.
std::vector<Row> all_rows();
/// Every operation. These are the first of all rows.
std::vector<Row> operation_rows();

/// The rows of `rows` that match a pattern, in the table's order; all rows if there are no patterns. A pattern is a
/// glob for a row's name or label, with or without the "nn/" or "rivals/" of layers. Wrong usage: a pattern that
/// matches no row.
std::vector<Row> chosen_rows(const std::vector<Row>& rows, const std::vector<std::string>& patterns);

/// Prints names and variants.
void list_rows(std::ostream& out, const std::vector<Row>& rows);

/// A row and its proof.
struct ProvenRow {
  Row row;
  Proof proof;
};

void print_proof_header(std::ostream& out);
/// Prints one line; below it, what was cut off in the line, in full, and `message`, which says what failed.
void print_proof(std::ostream& out, const ProvenRow& proven, const Terminal& terminal, const std::string& message);
/// Prints the gradients that are declared to be zero, and why.
void print_zeros(std::ostream& out, const std::vector<ProvenRow>& table);

/// The whole table, with nothing cut off, as one JSON object. `chosen` is how many rows were asked for; if the table
/// has fewer, the object says that it is not complete.
std::string proofs_as_json(const std::vector<ProvenRow>& table, i64 seed, size_t chosen);

/// A row and the results of its mutants.
struct MutatedRow {
  Row row;
  MutationReport report;
  std::string error;  ///< why there are no mutants; "" if there are
};

/// Sums over many rows.
struct MutantCount {
  i64 mutants = 0, caught = 0, equivalent = 0;  ///< equivalent ones are not among the mutants
  i64 rows_not_mutated = 0;                     ///< because their own backward is wrong, or they do not run
};
MutantCount count_mutants(const std::vector<MutatedRow>& table);

/// A line for each operation, and one for each rule of the engine.
void print_mutants(std::ostream& out, const std::vector<MutatedRow>& table);
/// Prints the mutants that change no gradient, by row and reason.
void print_equivalent(std::ostream& out, const std::vector<MutatedRow>& table);
/// Prints the mutants that no check noticed, or why the row has none.
void print_uncaught(std::ostream& out, const MutatedRow& row);

/// Every mutant and its result as one JSON object. `chosen` is how many rows were asked for; if the table has fewer,
/// the object says that it is not complete.
std::string mutants_as_json(const std::vector<MutatedRow>& table, i64 seed, size_t chosen);

/// The seeds first, first + 1, ..., last.
struct SeedRange {
  i64 first = 1, last = 1;
  i64 count() const { return last - first + 1; }
};
/// "3..17", or "3". Wrong usage: anything else, a last before the first, or a number beyond 999,999,999.
SeedRange seed_range(const std::string& text);

/// What is said, besides the exit code 1, where no chosen row has anything to check.
inline constexpr std::string_view nothing_checked =
    "orrery: gradcheck: nothing was checked: every input of these rows has size 0\n";

/// Proves `rows` with every seed of the range; returns the program's exit code.
int prove_seeds(const std::vector<Row>& rows, SeedRange seeds);

/// A mistake in all operations of one name.
class Hidden final : public Observer {
 public:
  enum class Kind {
    overwrites,     ///< the gradient so far is lost
    adds_twice,     ///< adds twice if there is a gradient already
    others_frozen,  ///< x 2 if fewer of the operation's inputs want a gradient than before
    writes_dy,      ///< changes dy in place
    remembers,      ///< adds once more what it added in the first pass, in place of g
    latest,         ///< x 2 if its forward has run again in the meantime
    coarse,         ///< in f32, rounded to the 8 bits of bf16
    far,            ///< x 2 if an input is beyond 6
    far_in_f32,     ///< the same, in f32 alone
    four_threads,   ///< x 2 with 4 threads
    many_threads,   ///< x 2 with more than 8
    other_thread,   ///< x 2 in another thread than the first
    sets_threads,   ///< sets the number of threads
    fiftieth,       ///< x 2 in every 50th pass
    keeps_dy,       ///< keeps each dy for ever
    dy_of_1,        ///< x 2 if dy is 1 everywhere
    uniform_dy,     ///< x 2 if dy has several numbers, and these are equal
    dy_with_0,      ///< x 2 if some numbers of dy are 0
    small_dy,       ///< x 2 if all numbers of dy are below 1e-3
    large_dy,       ///< x 2 if some number of dy is above 100
    at_0,           ///< x 2 if some number of an input is 0, but not all
    tiny_in_f32,    ///< in f32, x 2 if some number of an input is below 1e-15, but not 0
    computed,       ///< x 2 if an input was computed, as a leaf is not
    one_tensor,     ///< x 2 for an input that is an earlier one too
  };
  struct Named {
    Kind kind;
    const char* change;  ///< what a report calls it
    const char* part;    ///< the part of a proof (autograd/check/proof.h) that must catch it
  };
  static const std::vector<Named>& kinds();

  Hidden(Kind kind, std::string operation) : kind_(kind), operation_(std::move(operation)) {}
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs, std::span<const Tensor>) override;
  void recorded(const Node& node) override;
  void backward_begins(const Node& node) override;
  void backward_ended(const Node& node) override;
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override;
  /// Whether there was something to change.
  bool changed_anything() const { return changed_; }

 private:
  void double_values(Tensor& g);
  void replace(Tensor& g, const Tensor& wrong);
  void recall(Tensor& g);
  bool applies(const Node& node, size_t input) const;

  const Kind kind_;
  const std::string operation_;
  u64 root_ = 0, at_ = 0;  // numbers of the newest node of the current backward pass, and of the node that it visits
  i64 passes_ = 0;         // backward passes so far, the current one included
  i64 place_ = 0;          // contributions of the current pass so far, the current one included
  u64 latest_ = 0;         // the operation's newest node
  size_t most_inputs_with_gradient_ = 0;
  double smallest_input_ = 0, largest_input_ = 0;  // magnitudes, of the latest forward
  const std::thread::id home_ = std::this_thread::get_id();
  std::vector<Tensor> kept_;
  std::map<std::pair<Dtype, i64>, Tensor> first_pass_;
  bool changed_ = false;
};

/// Makes and judges the mistakes with the numbers that `gradcheck(sample, seed)` checks: in every operation of a small
/// sample, in one operation of a large one, in none of a sample with long tensors. These would take too much time, and
/// the same operations have short samples. What catches a mistake is the part of a proof, or else the gradient check.
MutationReport hidden_mutants(const Sample& sample, u64 seed);

}  // namespace orrery
