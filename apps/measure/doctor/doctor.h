// Chapter 9. How `orrery doctor` shows its findings.
#pragma once

#include <ostream>
#include <vector>

#include "apps/program/findings.h"
#include "apps/program/terminal.h"

namespace orrery {

/// "ok", "note" or "harmful".
std::string_view name_of(Verdict verdict);

/// One line for each finding, and one that counts them.
void print_findings(std::ostream& out, const std::vector<Finding>& all, const Terminal& terminal);

/// Error: something is harmful, naming the subjects.
void check_harmless(const std::vector<Finding>& all);

}  // namespace orrery
