// Chapter 3. Ways to break a backward pass: the changes of one contribution.
//
// A contribution g is what one operation adds to the gradient of one of its inputs. Each mistake is an observer
// (autograd/observer.h); autograd/check/mutation.h asks the gradient checker about every one of them. The engine's own
// rules are broken in autograd/check/faulty_engine.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"
#include "autograd/observer.h"

namespace orrery {

/// One way to get a contribution wrong: its name, when it is possible, and what it turns g into. `so_far` is the
/// gradient before g was added; not defined if g is the first contribution.
struct Change {
  std::string name;
  std::function<bool(const Tensor& g, const Tensor& so_far)> possible;
  std::function<Tensor(const Tensor& g, const Tensor& so_far)> apply;
};
/// x 0, x -1, x 2, x 1.0001, dropped, overwriting, transposed, x 2 from row 8192 on.
std::vector<Change> all_changes();

/// What is known about one contribution of the right backward pass.
struct Contribution {
  std::string operation;
  i64 input = 0;
  bool empty = false, zero = false, symmetric = false;
  std::string declared_zero;   ///< the reasons, if it leads only to leaves that are declared zero; else ""
  std::vector<bool> possible;  ///< for each change
};

/// Lists the contributions of a backward pass of f, and whether any was added to one before it.
class Recorder final : public Observer {
 public:
  Recorder(const Checkable& f, const std::vector<Change>& changes) : f_(f), changes_(changes) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override;

  std::vector<Contribution> contributions;
  bool accumulates = false;

 private:
  std::string declared_zero(const Node& node) const;

  const Checkable& f_;
  const std::vector<Change>& changes_;
};

/// Applies a change to contribution number `target`.
class ChangeOne final : public Observer {
 public:
  ChangeOne(const Change& change, i64 target) : change_(change), target_(target) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override;
  /// Begins the next pass.
  void reset() { seen_ = 0; }

 private:
  const Change& change_;
  const i64 target_;
  i64 seen_ = 0;
};

/// An engine in which every contribution replaces the gradient so far.
class OverwriteAll final : public Observer {
 public:
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override;
};

}  // namespace orrery
