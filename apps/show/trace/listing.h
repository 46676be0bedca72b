// Chapter 9. The pass as text: two lines for each step.
#pragma once

#include <ostream>

#include "apps/show/trace/model_pass.h"

namespace orrery {

/// What is shown, the forward pass, the backward pass and the gradients of the parameters, in `table_width` columns.
void print_pass(std::ostream& out, const ModelPass& pass);

}  // namespace orrery
