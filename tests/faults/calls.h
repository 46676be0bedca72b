// Chapter 9. Running a program whose system calls fail as asked, or are recorded: tests/faults/preload.cpp does that.
#pragma once

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

namespace orrery::faults {

/// Which calls fail, and how: the variables of preload.cpp.
struct Fault {
  std::string call;
  int at = 1, times = 1;
  std::string error;  // the number of an error, "short" or "kill"

  std::string text() const {
    const bool is_number = error.find_first_not_of("0123456789") == std::string::npos;
    return call + " " + std::to_string(at) + ", " + std::to_string(times) +
           " times: " + (is_number ? std::strerror(std::stoi(error)) : error);
  }
};

/// One line of the record.
struct Call {
  std::string name;
  bool done = false;
  std::vector<std::string> about;
  int file() const { return std::stoi(about.at(0)); }
};
inline std::vector<Call> calls_in(const std::string& record) {
  std::vector<Call> calls;
  std::istringstream lines(contents(record));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> parts;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, '\t');) parts.push_back(part);
    calls.push_back({parts.at(0), parts.at(1) == "done", {parts.begin() + 2, parts.end()}});
  }
  return calls;
}

/// What a program left behind.
struct Outcome {
  int exit_code = 0;
  std::string output, errors;
  std::vector<Call> calls;
};

/// Runs `orrery ARGUMENTS`; its calls on the files of `folder` are recorded, and fail as `fault` says. A sanitizer's
/// library wants to be the first one to load, and need not be.
inline Outcome run_with_faults(const std::string& arguments, const TemporaryFolder& folder, const Fault& fault = {}) {
  const TemporaryFolder beside;
  const std::string record = beside / "record", errors = beside / "errors";
  const std::string variables = "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD='" ORRERY_BUILD_FOLDER
                                "/tests/orrery_faults.so' ORRERY_FAULT_FOLDER='" +
                                folder.path().string() + "' ORRERY_FAULT_RECORD='" + record + "' ORRERY_FAULT_CALL='" +
                                fault.call + "' ORRERY_FAULT_AT=" + std::to_string(fault.at) +
                                " ORRERY_FAULT_TIMES=" + std::to_string(fault.times) +
                                " ORRERY_FAULT_ERROR=" + fault.error;
  const program::Result result = program::shell(variables + " timeout -k 1 60 " + program::quoted_program + arguments +
                                                " 2>'" + errors + "'; exit $?");
  return {result.exit_code, result.text, contents(errors), calls_in(record)};
}

}  // namespace orrery::faults
