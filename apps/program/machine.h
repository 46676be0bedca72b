// Chapter 9. What a run says at its start: everything its speed and its bits depend on.
//
//   seed 1, 2 threads, products in at least 2 tiles, OpenBLAS 0.3.21 (OpenMP), kernel Haswell
//   model of 128013 parameters
// Serves: apps/toy/toy.cpp
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace orrery {

struct RunStart {
  i64 seed = 0;
  i64 parameters = 0;           ///< numbers the model learns; 0 prints nothing
  double expected_seconds = 0;  ///< how long it should take; 0 prints nothing
};
/// Prints the lines, and a warning for each environment variable that makes this machine slower than it is.
void print_start(std::ostream& out, const RunStart& start);

/// Bytes of memory that this machine has.
i64 physical_memory();

/// Such as "AMD EPYC 9B45"; "unknown" where the system does not tell.
std::string cpu_name();

/// Vector instructions, from narrow to wide.
enum class VectorLevel { baseline, avx, avx2, avx512 };
/// What this CPU can do; `baseline` on anything but x86.
VectorLevel cpu_vector_level();
/// What OpenBLAS's kernels of this name use; nothing for names of other architectures.
std::optional<VectorLevel> kernel_vector_level(std::string_view kernel);

/// Warns when OPENBLAS_CORETYPE (`coretype`, null if not set) made OpenBLAS take a kernel below the CPU's level.
std::optional<std::string> kernel_warning(const char* coretype, std::string_view kernel, VectorLevel cpu);
/// Says which variables OPENBLAS_... of `environment` (null at its end) are set: OpenBLAS reads them, and they may
/// change speed and bits. Nothing if none is.
std::optional<std::string> blas_variables(const char* const* environment);
/// Warns when there are more threads than tiles: the others have nothing to do in the deepest products, those of BLAS.
std::optional<std::string> tiles_warning(int threads, int tiles);
/// Warns when OMP_WAIT_POLICY is passive: threads then sleep between loops that follow one another in microseconds.
std::optional<std::string> wait_policy_warning(const char* policy);

/// How many of the cores other programs kept busy between two readings of /proc/stat (Linux), a moment apart, in which
/// this program slept; 0 where the texts do not tell.
double busy_cores(std::string_view before, std::string_view after, int cores);
/// Warns when that is more than a quarter of a core: what is measured then is not what the machine can do.
std::optional<std::string> busy_warning(double busy, int cores);
/// Looks at this machine for a fifth of a second, and prints the warning.
void print_busy_warning(std::ostream& out);

}  // namespace orrery
