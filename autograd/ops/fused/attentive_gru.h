// Chapter 8. A gated recurrent unit that attends to a memory before each step.
#pragma once

#include "autograd/variable.h"

namespace orrery {

class Mask;

/// What `attentive_gru` returns: states [B, T, H], and contexts [B, T, M], what attention read at each position.
struct AttentiveGruResult {
  Variable states, contexts;
};
/// The parameters of `attentive_gru`, for H units, queries of size A, and a memory of size M.
struct AttentiveGruParameters {
  Variable W;          ///< [3 H, H]: gates from the state
  Variable b;          ///< [3 H], which may be undefined
  Variable W_query;    ///< [A, H]: a query from the state
  Variable v;          ///< [A]: a score from tanh(query + key)
  Variable W_context;  ///< [3 H, M]: gates from what attention read
};
/// A gated recurrent unit (see `gru`) with additive attention to a memory before each step: s_t from s_{t-1} and
/// gates_t + W_context c_t, with c_t the context of s_{t-1}. Shapes: gates [B, T, 3 H] in the order r, z, n; s0 [B, H],
/// which must be defined; keys [B, S, A]; memory [B, S, M]. Only the padding of `mask` is used: it is that of the
/// memory. If `weights` is given, it receives the attention weights [B, T, S]. Errors: shapes or a padding that do not
/// fit.
AttentiveGruResult attentive_gru(const Variable& gates, const Variable& s0, const Variable& keys,
                                 const Variable& memory, const AttentiveGruParameters& parameters, const Mask& mask,
                                 Tensor* weights = nullptr);

}  // namespace orrery
