// Chapter 9. The report on trainings as one page for a browser, which needs no network and has no script.
#pragma once

#include <string>

#include "apps/show/report/run_files.h"

namespace orrery::run_report {

/// A table of the logs, their curves, scores, samples and configurations. Options that differ stand out.
std::string report_page(const RunFiles& files);

}  // namespace orrery::run_report
