// Chapter 2. Observers: they see each operation that runs, forward and backward, and what it adds to gradients.
//
// Profiles, the search for the first NaN and the checker's mutations are all observers. Without one, the cost is a
// few tests of a pointer per operation. An observer belongs to the thread that put it in force, and sees only what this
// thread runs.
#pragma once

#include <span>
#include <string_view>

#include "autograd/node.h"

namespace orrery {

class Leaf;

/// If an operation throws, its beginning is reported, but no end. An observer may throw, which ends the pass like an
/// operation's error.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before an operation's forward runs: its name and its inputs, of which optional ones may be undefined.
  virtual void forward_begins(std::string_view, std::span<const Variable* const>) {}
  /// After it: the same, and the outputs.
  virtual void forward_ended(std::string_view, std::span<const Variable* const>, std::span<const Tensor>) {}
  /// After that, if the operation was put on the tape: the node whose backward will run.
  virtual void recorded(const Node&) {}
  /// Before and after a node's backward runs; `outputs` of the node hold the gradients that it reads.
  virtual void backward_begins(const Node&) {}
  virtual void backward_ended(const Node&) {}
  /// True when `contribution` should be called.
  virtual bool changes_contributions() const { return false; }
  /// What a node's backward adds to the gradient of one of its inputs, and the number of that input. The tensor may be
  /// replaced by another, or by an undefined one, which adds nothing.
  virtual void contribution(const Node&, size_t, Tensor&) {}
  /// A gradient arrived at a parameter, which may be freed with the tape: keep no pointer to it.
  virtual void leaf_reached(const Leaf&) {}
};

/// The observer in force on this thread, null if there is none.
Observer* observer();

/// The base of an observer that passes everything on to the observer that was in force before it. An override calls the
/// function that it overrides first.
class ForwardingObserver : public Observer {
 public:
  void forward_begins(std::string_view name, std::span<const Variable* const> inputs) override {
    if (outer_) outer_->forward_begins(name, inputs);
  }
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    if (outer_) outer_->forward_ended(name, inputs, outputs);
  }
  void recorded(const Node& node) override {
    if (outer_) outer_->recorded(node);
  }
  void backward_begins(const Node& node) override {
    if (outer_) outer_->backward_begins(node);
  }
  void backward_ended(const Node& node) override {
    if (outer_) outer_->backward_ended(node);
  }
  bool changes_contributions() const override { return outer_ && outer_->changes_contributions(); }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    if (outer_ && outer_->changes_contributions()) outer_->contribution(node, input, g);
  }
  void leaf_reached(const Leaf& leaf) override {
    if (outer_) outer_->leaf_reached(leaf);
  }

 private:
  Observer* const outer_ = observer();
};

/// Puts an observer in force on this thread for as long as this object lives.
class ObserverScope {
 public:
  explicit ObserverScope(Observer& observer);
  ~ObserverScope();
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  Observer* before_;
};

}  // namespace orrery
