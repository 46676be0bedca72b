// Chapter 8. Attention in tiles: each thread holds no more than B_r x B_c scores at a time, whatever the length.
//
// `packed_attention` takes this form for long sequences. It can also be called by name, with tiles so small that a
// short sequence has several, as tests do. It is "FlashAttention: Fast and Memory-Efficient Exact Attention with
// IO-Awareness" (Dao, Fu, Ermon, Rudra, Re 2022) with the order of loops of "FlashAttention-2" (Dao 2023): forward
// loops over tiles of queries, and divides O only at the end. Q_i, O_i and dO_i are tiles of B_r queries, K_j and V_j
// tiles of B_c keys. m are dropout's factors and W = m P, as in autograd/ops/fused/attention/packed_attention.cpp.
// largest_i and sum_i have one number for each query (m_i and l_i of Dao 2023).
//
// Forward (Dao 2023, algorithm 1). For each i, start with largest_i = -infinity, sum_i = 0, O_i = 0; for each j that
// Q_i sees:
//   S_ij = Q_i K_j^T / sqrt(d_k)              plus the bias by distance, if there is one
//   largest_new = max(largest_i, largest of each row of S_ij)
//   a = e^{largest_i - largest_new}           rescales the sums of earlier tiles
//   E_ij = e^{S_ij - largest_new}             the weights before division by their sum
//   sum_i = a sum_i + sum of each row of E_ij
//   O_i = a O_i + (m E_ij) V_j
//   largest_i = largest_new
// and finally O_i = O_i / sum_i. largest_i and 1 / sum_i are saved. (Dao saves a single number, L_i = largest_i +
// log sum_i, and computes P_ij = e^{S_ij - L_i}. If scores are in the thousands, L_i has a rounding error of more than
// 1e-4, and so does every P_ij. With two numbers, P_ij is the same as in the forward pass.)
//
// Backward (Dao 2023, algorithm 2). Softmax's derivative needs D_i, one number for each query: the sum of P dP over all
// keys. Since dP_ij = m (dO_i V_j^T) and O_i = sum over j of (m P_ij) V_j, it equals <dO, O>, the inner product of the
// query's rows of dO and O, and is therefore known before the first tile. For each j, for each i that sees K_j:
//   P_ij = e^{S_ij - largest_i} / sum_i       S_ij computed again
//   dV_j = dV_j + (m P_ij)^T dO_i
//   dW_ij = dO_i V_j^T
//   dS_ij = P_ij (m dW_ij - D_i)
//   dK_j = dK_j + dS_ij^T Q_i / sqrt(d_k)
//   dQ_i = dQ_i + dS_ij K_j / sqrt(d_k)
//   dbias = dbias + sums of dS_ij along its diagonals
// The code keeps dS_ij / sqrt(d_k), as `scaled_dS`.
//
// Blocks of 64 keys that the mask hides from all queries of a tile are skipped. Memory is linear in n + m.
// Read next: nn/files/files.h
#pragma once

#include "autograd/ops/fused/attention/packed_attention.h"
#include "autograd/ops/fused/attention/scores.h"

namespace orrery {

/// The number of queries and keys of a tile: B_r and B_c.
struct TileSizes {
  i64 queries = kernels::query_tile;  ///< a multiple of `width_multiple`, at most `query_tile`
  i64 keys = 256;                     ///< at most 512
};

/// `packed_attention`, computed as above.
Variable tiled_attention(const Variable& qkv, const HeadSizes& heads, const Mask& mask,
                         const AttentionWeightOptions& options = {}, TileSizes tile = {});
Variable tiled_attention(const Variable& q, const Variable& kv, const HeadSizes& heads, const Mask& mask,
                         const AttentionWeightOptions& options = {}, TileSizes tile = {});

}  // namespace orrery
