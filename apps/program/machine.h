// Chapter 9. The first lines of a run: everything that its speed and its bits depend on.
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
  double expected_seconds = 0;  ///< the expected time; 0 prints nothing
};
/// Prints the lines, and a warning for each environment variable that makes the run slower than it could be.
void print_start(std::ostream& out, const RunStart& start);

/// The size of this machine's memory in bytes.
i64 physical_memory();

/// The name of the CPU, such as "AMD EPYC 9B45"; "unknown" if the system does not tell.
std::string cpu_name();

/// Vector instructions, from narrow to wide.
enum class VectorLevel { baseline, avx, avx2, avx512 };
/// The highest level that this CPU has; `baseline` if it is not an x86.
VectorLevel cpu_vector_level();
/// The level that OpenBLAS's kernels of this name use; nothing for other architectures.
std::optional<VectorLevel> kernel_vector_level(std::string_view kernel);

/// Warns if OPENBLAS_CORETYPE (`coretype`, null if not set) makes OpenBLAS use a kernel below the CPU's level.
std::optional<std::string> kernel_warning(const char* coretype, std::string_view kernel, VectorLevel cpu);
/// Names the variables OPENBLAS_... that are set in `environment` (which ends with null): they may change speed and
/// bits. Nothing if there are none.
std::optional<std::string> blas_variables(const char* const* environment);
/// Warns if there are more threads than tiles: in the deepest products, those of BLAS, the others have nothing to do.
std::optional<std::string> tiles_warning(int threads, int tiles);
/// Warns if OMP_WAIT_POLICY is passive: threads then sleep between loops, even if these are microseconds apart.
std::optional<std::string> wait_policy_warning(const char* policy);

/// How many cores other programs kept busy between two readings of /proc/stat (Linux), while this program slept; 0 if
/// the texts do not tell.
double busy_cores(std::string_view before, std::string_view after, int cores);
/// Warns if that is more than a quarter of a core: measured times are then too long.
std::optional<std::string> busy_warning(double busy, int cores);
/// Measures this machine for a fifth of a second, and prints the warning.
void print_busy_warning(std::ostream& out);

}  // namespace orrery
