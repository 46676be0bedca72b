// Chapter 9. What is right and wrong with a machine, a build and an environment, and what to do about it.
//
// One list for two readers: a training prints at its start what is harmful; `orrery doctor` prints everything, and
// measures as well (apps/measure/doctor/checks.h). The functions look only at values that were read before, so that
// tests can describe any machine to them.
#pragma once

#include <string>
#include <vector>

#include "apps/program/machine.h"

namespace orrery {

/// `note`: it costs speed, or may surprise. `harmful`: runs take at least twice as long, or fail.
enum class Verdict { ok, note, harmful };

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string subject;   ///< a word, such as "threads"
  std::string text;      ///< what was found
  std::string advice{};  ///< what to do about it; "" if nothing
};

/// "warning: TEXT; ADVICE", or "note: ..." for what is not harmful. One line without control characters.
std::string line_of(const Finding& finding);

/// What is known without measuring, one finding for each subject: cpu, build, threads, blas, openmp, memory.
std::vector<Finding> findings(const Machine& machine);

/// Whether other programs keep cores busy, which makes measured times too long.
Finding busy_finding(const BusyCores& busy, int cores);

/// "OpenBLAS 0.3.21 (OpenMP), kernel Haswell"
std::string described(const BlasInfo& blas);

}  // namespace orrery
