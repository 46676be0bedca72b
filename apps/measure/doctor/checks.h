// Chapter 9. What `orrery doctor` measures and looks up besides what every run does (apps/program/machine.h), and how
// it shows its findings.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/program/machine.h"
#include "apps/program/terminal.h"

namespace orrery {

/// The free bytes of the disk of a folder, and whether files can be written there.
struct FreeSpace {
  i64 bytes = 0;  ///< -1: the system does not tell
  bool writable = false;
};
FreeSpace free_space_of(const std::string& folder);
Finding disk_finding(const FreeSpace& space);

/// What keeps the clock of the CPU low: a battery, or a setting of the system; as far as the system tells.
Finding power_finding(const SystemFiles& files);

/// What computes products with --precision bf16 (`bf16_arithmetic`), and whether a training would be faster with it:
/// the speed of such a product, as times that of one in f32.
Finding bf16_finding(const std::string& arithmetic, double times_f32);
/// Measures that for the size of a layer's product.
double bf16_speed_in_f32();

/// The most arithmetic that the CPU can do, by which products are judged: operations per second of f32 in
/// multiplications and additions of registers alone, with vectors of `level`, which the CPU must have. The sum over as
/// many threads as `cores`, which compute side by side for `seconds`, each at the speed of its fastest run. It is
/// measured, since a CPU's clock depends on its temperature, on its other cores and on the instructions themselves.
double peak_speed(VectorLevel level, int cores, double seconds);

/// Operations per second.
struct Speed {
  double ours = 0;  ///< of a matrix product of the size of a layer's, by our own kernels
  double blas = 0;  ///< of one such product on each thread, by OpenBLAS
  double peak = 0;  ///< of multiplications and additions of registers alone
};
/// Takes about half a second.
Speed measured_speed_of(const Machine& machine);
/// If other programs kept cores busy, nothing is harmful: another measurement may be better. How fast OpenBLAS
/// is counts only if it computes the products.
Finding speed_finding(const Speed& speed, bool busy, const Machine& machine);

/// Everything, in the order in which it is printed; measures for about a second.
std::vector<Finding> all_findings(const Machine& machine, Speed& speed);

/// "ok", "note" or "harmful".
std::string_view name_of(Verdict verdict);

/// One line for each finding, and one that counts them.
void print_findings(std::ostream& out, const std::vector<Finding>& all, const Terminal& terminal);

/// Error: something is harmful, naming the subjects.
void check_harmless(const std::vector<Finding>& all);

}  // namespace orrery
