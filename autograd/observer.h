// Chapter 2. The one place where others may look on: what runs, forward and backward, and what it adds to gradients.
//
// Profiles, the search for the first NaN and the checker's mutations all hang here and nowhere else; without an
// observer the cost is one test of a pointer per operation.
// An observer belongs to the thread that put it in force: it sees what this thread runs, and nothing of others.
// Serves: autograd/engine.cpp
#pragma once

#include <span>
#include <string_view>

#include "autograd/node.h"

namespace orrery {

/// An operation that throws has a beginning and no end. An observer may throw: that ends the pass as an operation's
/// error does.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before an operation's forward runs.
  virtual void forward_begins(std::string_view, std::span<const Variable* const>) {}
  /// After it; `inputs` may be undefined where optional.
  virtual void forward_ended(std::string_view, std::span<const Variable* const>, std::span<const Tensor>) {}
  virtual void backward_begins(const Node&) {}
  virtual void backward_ended(const Node&) {}
  /// True when `contribution` should be called.
  virtual bool changes_contributions() const { return false; }
  /// What a node's backward adds to the gradient of its input number `input`; may be replaced, or dropped by undefining
  /// it.
  virtual void contribution(const Node&, size_t, Tensor&) {}
  /// A gradient arrived at a parameter.
  virtual void leaf_reached(const Leaf&) {}
};

/// The observer in force on this thread, null if there is none.
Observer* observer();

/// The base of an observer that others may look over: it hands everything on to the one that was in force before. Where
/// it looks itself it calls the base's function too, first.
class ForwardingObserver : public Observer {
 public:
  void forward_begins(std::string_view name, std::span<const Variable* const> inputs) override {
    if (outer_) outer_->forward_begins(name, inputs);
  }
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    if (outer_) outer_->forward_ended(name, inputs, outputs);
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
