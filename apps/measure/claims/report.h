// Chapter 9. Claims and findings as text of 100 columns, and as JSON.
#pragma once

#include <ostream>

#include "apps/measure/claims/claims.h"
#include "apps/program/terminal.h"

namespace orrery::claims {

/// A claim and what its measurement showed.
struct Measured {
  Claim claim;
  Finding finding;
};

/// The claims by name, with what they say; nothing is measured.
void print_names(std::ostream& out, const std::vector<Claim>& claims);
/// Claim, source, measurement, what decides the verdict, and the verdict.
void print_measured(std::ostream& out, const Measured& measured, const Terminal& terminal);
/// "14 claims: 11 hold, 2 do not, 1 partly"
std::string summary_of(const std::vector<Measured>& all);
/// All of it as one JSON object. `chosen` is how many claims were asked for; if there are fewer findings, the object
/// says that it is not complete.
std::string claims_as_json(const std::vector<Measured>& all, size_t chosen);

}  // namespace orrery::claims
