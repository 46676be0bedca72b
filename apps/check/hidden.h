// Chapter 9. Mistakes that a single backward pass does not show: each must be caught by a certain part of a proof.
//
// They test the checker, not the function that is proven: `orrery gradcheck --mutate` makes them in each operation.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "autograd/check/mutation.h"
#include "autograd/observer.h"

namespace orrery {

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
    at_0,           ///< x 2 if some number of an input is 0
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
