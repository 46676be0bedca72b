// Chapter 2. When a backward pass fails: what it must undo, so that no later gradient is wrong.
//
// Before a walk adds to a parameter, it notes what gradient the parameter has. If the walk then fails, the gradients
// that wait inside the tape are dropped, and so is the gradient of each parameter that the walk added to. If such a
// parameter had a gradient before, that sum is lost, and reading it is an error (`Leaf::gradient_lost`). The rule for
// users: the comment of `backward` in autograd/variable.h.
#pragma once

#include <span>
#include <string_view>

#include "autograd/node.h"

namespace orrery {

/// What one walk has to undo if it fails.
class WalkUndo {
 public:
  /// Notes the gradient that the parameter at `edge` has before `user` adds to it; does nothing for other edges.
  /// Errors: the gradient is lost, or of another shape or dtype than its parameter; another value replaced the
  /// parameter, so that nobody would look for the gradient.
  void note_leaf(const Edge& edge, std::string_view user);
  /// Undoes the walk. `waiting` are the nodes that have not been visited, `current` is the one that failed, or null.
  void restore(std::span<const std::shared_ptr<Node>> waiting, Node* current) noexcept;

 private:
  // A parameter and the gradient it had. Keeping the tensor itself would add an owner, and the engine would copy before
  // adding.
  struct NotedLeaf {
    std::shared_ptr<Node> node;
    const void* gradient;  // null if it had none
    u64 version;
  };
  std::vector<NotedLeaf> leaves_;
};

}  // namespace orrery
