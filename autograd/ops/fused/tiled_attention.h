// Chapter 8. Attention in tiles: no more than B_r x B_c scores exist at a time, whatever the length.
//
// The form that `packed_attention` takes for long sequences; only tests and the gradient checker call it by name, with
// tiles small enough that a short sequence has several. "FlashAttention: Fast and Memory-Efficient Exact Attention with
// IO-Awareness" (Dao, Fu, Ermon, Rudra, Re 2022), in the order of loops of "FlashAttention-2" (Dao 2023): forward goes
// by tiles of queries and leaves O undivided until the end. Q_i, O_i, dO_i are tiles of B_r queries, K_j, V_j of B_c
// keys; m is dropout's factors and W = m P, as in ops/packed_attention.cpp; largest_i and sum_i are a number for
// each query (m_i and l_i of Dao 2023).
//
// Forward (Dao 2023, algorithm 1). For each i, from largest_i = -infinity, sum_i = 0, O_i = 0, over all j that Q_i
// sees:
//   S_ij = Q_i K_j^T / sqrt(d_k)              plus the bias by distance, if there is one
//   largest_new = max(largest_i, largest of each row of S_ij)
//   a = e^{largest_i - largest_new}           what earlier tiles are worth now
//   E_ij = e^{S_ij - largest_new}             the weights, but for the sum that divides them
//   sum_i = a sum_i + sum of each row of E_ij
//   O_i = a O_i + (m E_ij) V_j
//   largest_i = largest_new
// then O_i = O_i / sum_i. Saved are largest_i and 1 / sum_i. (Dao saves L_i = largest_i + log sum_i alone, for one
// formula, P_ij = e^{S_ij - L_i}. Where scores are in the thousands, L_i is rounded by more than 1e-4, and so is every
// P_ij; with two numbers it is the P_ij of the forward pass.)
//
// Backward (Dao 2023, algorithm 2). Softmax's derivative needs D_i = sum of each row of P_i * dP_i over all keys at
// once. But dP_ij = m dO_i V_j^T, so that it is the sum over j of dO_i * ((m P_ij) V_j), which is dO_i * O_i: known
// before the first tile. For each j, over all i that see K_j:
//   P_ij = e^{S_ij - largest_i} / sum_i       S_ij computed again
//   dV_j = dV_j + (m P_ij)^T dO_i
//   dW_ij = dO_i V_j^T
//   dS_ij = P_ij (m dW_ij - D_i) / sqrt(d_k)
//   dK_j = dK_j + dS_ij^T Q_i
//   dQ_i = dQ_i + dS_ij K_j
//   dbias = dbias + sums of dS_ij along its diagonals, without 1 / sqrt(d_k)
//
// Tiles that the mask's ranges (causal, windows, padding) hide from all their queries cost nothing. Memory is linear in
// n + m.
// Read next: nn/files/files.h
#pragma once

#include "autograd/ops.h"
#include "autograd/ops/fused/scores.h"

namespace orrery {

/// Queries and keys whose scores are held at a time: B_r and B_c.
struct TileSizes {
  i64 queries = kernels::query_tile;  ///< a multiple of `lane_multiple`, at most `query_tile`
  i64 keys = 256;
};

/// `packed_attention` (autograd/ops.h), computed as above.
Variable tiled_attention(const Variable& qkv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask, double p = 0,
                         const Draw& draw = {}, TileSizes tile = {}, const Variable& bias = {});
Variable tiled_attention(const Variable& q, const Variable& kv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask,
                         double p = 0, const Draw& draw = {}, TileSizes tile = {}, const Variable& bias = {});

}  // namespace orrery
