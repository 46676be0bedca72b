// Chapter 9. What each step of the paper's model means: its box in Figure 1, the names of its values, its equation.
#pragma once

#include <string>
#include <vector>

#include "apps/show/trace/recorder.h"
#include "apps/show/trace/sources.h"

namespace orrery {

/// A box of the paper's Figure 1.
struct TracedBox {
  std::string id;     ///< "encoder.layers.0.self_attn", as modules are named; "loss" for the last one
  std::string title;  ///< "Encoder layer 0: multi-head self-attention"
  SourceLine source;  ///< where the model computes it
};

/// Fills in the box, the equation and the names of values of each step. Error: a step that the paper's model does not
/// have.
void explain(std::vector<TracedStep>& steps);

/// The box with this id.
TracedBox traced_box(const std::string& id);

}  // namespace orrery
