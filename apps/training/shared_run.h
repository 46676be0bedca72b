// Chapter 9. --ranks: what a training program adds when several processes make its training together.
#pragma once

#include <functional>

#include "apps/training/program.h"

namespace orrery {

/// Gives `program` the processes of mpirun as its ranks, and returns what `train` returns on rank 0, which alone
/// prints, writes files and reports; 0 on the others. Unless threads or --max-memory are given, the ranks of a machine
/// share its cores and its memory. If `train` throws on some ranks alone, all end. Errors: those of `mpi_ranks`.
int run_on_ranks(TrainingProgram& program, bool threads_are_given, const std::function<int()>& train);

/// A step has a micro-batch for each rank, unless --micro-batches is given.
void give_each_rank_a_batch(TrainingProgram& program);

/// Error, the same on all ranks, before the first step: the ranks would not compute the same bits, since one has other
/// options, texts, parameters, kernels, or another program. It names the rank and what differs. With --sum fast, rank 0
/// warns of it.
void check_alike(const TrainingProgram& program, const Trainer& trainer);

/// Prints the warnings of other ranks that rank 0 did not have.
void share_warnings(Ranks& ranks);

}  // namespace orrery
