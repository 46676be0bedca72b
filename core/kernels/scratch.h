// Chapter 8. Parallel tasks that need memory of their own while they run.
#pragma once

#include <algorithm>

#include "core/machine/parallel.h"
#include "core/tensor.h"

namespace orrery::kernels {

/// Calls body(i, scratch) for each task i in [0, tasks); `scratch` has `scratch_size` uninitialised elements, aligned
/// like a tensor's if that is a multiple of 64 bytes. Each thread runs one group of tasks with one scratch buffer,
/// which stays in its cache. Results do not depend on the groups. `work`: as for `parallel_tasks`. Error, before any
/// task runs: not enough memory.
template <class T, class Body>
static void tasks_with_scratch(i64 tasks, i64 scratch_size, const Body& body, i64 work = least_shared_work) {
  const i64 count = threads_for(work),
            share = std::min(std::max<i64>(1, (tasks + count - 1) / count), loop_rules.largest_grain);
  const i64 groups = (tasks + share - 1) / share;
  Tensor memory = Tensor::empty({groups, scratch_size}, dtype_of<T>);
  T* scratch = memory.write<T>();
  parallel_tasks(groups, [&](i64 group) {
    for (i64 i = group * share; i < std::min(tasks, (group + 1) * share); ++i) body(i, scratch + group * scratch_size);
  });
}

}  // namespace orrery::kernels
