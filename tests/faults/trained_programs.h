// Chapter 9. What the tests of faults share: the programs that train and save, one table; how their system calls may
// fail, another one; running such a program with a fault, or with its calls recorded (preload.cpp); the files of a
// folder.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/temporary_folder.h"

namespace orrery::faults {

/// The contents of the files in a folder, by their names.
using FolderState = std::map<std::string, std::string>;
inline FolderState state_of(const TemporaryFolder& folder) {
  FolderState state;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.is_regular_file()) state[entry.path().filename()] = contents(entry.path());
  return state;
}
inline void put(const FolderState& state, const TemporaryFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.is_regular_file()) std::filesystem::remove(entry.path());
  for (const auto& [name, text] : state) set_contents(folder / name, text);
}

/// A program with a small model and the texts that it learns.
struct TrainedProgram {
  std::string name, command, options;
  bool averages = false;  ///< by default it saves the mean of the parameters at its last evaluations

  /// Arguments of a training that evaluates and saves after every `every` steps; 0: only at its end.
  std::string begin(const std::string& model, int steps, int every) const {
    return command + ' ' + options + "--dropout 0.1 --threads 1 --hash --steps " + std::to_string(steps) +
           " --evaluate-every " + std::to_string(every) + average(every) + " --save '" + model + "' ";
  }
  std::string resume(const std::string& model) const {
    return command + " --threads 1 --hash --resume '" + model + "' ";
  }

 private:
  std::string average(int every) const {
    if (!averages) return "";
    return every > 0 ? " --average-last 1" : " --average-last 0 --patience 0";
  }
};

/// All of them; they end a training with the same code, so one is enough where that is tried often. The texts stand in
/// `folder`.
inline std::vector<TrainedProgram> trained_programs(const TemporaryFolder& folder) {
  const std::string text = folder / "text", english = folder / "a.en", german = folder / "a.de";
  set_contents(text, program::repeated("abc \n", 200));
  set_contents(english, small::animal_text().english);
  set_contents(german, small::animal_text().german);
  return {{"toy", "toy", program::small_toy_options},
          {"lm", "lm train", "'" + text + "' " + program::tiny + "--estimate-batches 1 "},
          {"translate", "translate train",
           "--source '" + english + "' --target '" + german +
               "' --segmented --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 --batch-tokens 40 "
               "--max-tokens 20 ",
           true}};
}

inline const std::string no_space = std::to_string(ENOSPC), io_error = std::to_string(EIO),
                         by_signal = std::to_string(EINTR);
inline constexpr int for_good = 1'000'000, many_signals = 20;

/// How each call may fail. A signal does not interrupt a call for ever; the others may last. It cannot interrupt
/// rename, mmap or unlink (POSIX).
struct Failure {
  std::string call, error;
  std::vector<int> times{1, for_good};
};
inline const std::vector<Failure> failures{{"open", no_space},
                                           {"open", io_error},
                                           {"open", by_signal, {1, many_signals}},
                                           {"write", no_space},
                                           {"write", io_error},
                                           {"write", by_signal, {1, many_signals}},
                                           {"write", "short"},
                                           {"fsync", no_space},
                                           {"fsync", io_error},
                                           {"fsync", by_signal, {1, many_signals}},
                                           {"close", no_space, {1}},
                                           {"close", io_error},
                                           {"close", by_signal, {1}},
                                           {"rename", no_space},
                                           {"rename", io_error},
                                           {"mmap", std::to_string(ENOMEM)},
                                           {"read", io_error},
                                           {"read", by_signal, {1, many_signals}},
                                           {"read", "short"},
                                           {"truncate", io_error},
                                           {"truncate", by_signal, {1, many_signals}},
                                           {"chmod", io_error},
                                           {"chmod", by_signal, {1, many_signals}},
                                           {"allocate", no_space},
                                           {"allocate", io_error},
                                           {"allocate", by_signal},
                                           {"lock", io_error},
                                           {"lock", by_signal, {1, many_signals}},
                                           {"dup", std::to_string(EMFILE)},
                                           {"unlink", io_error},
                                           {"mkdir", no_space},
                                           {"mkdir", io_error},
                                           {"mkdir", by_signal, {1, many_signals}},
                                           {"any", "kill", {1}}};

/// Which of `count` calls fail: `few` at random, or all if it is 0.
inline std::set<int> places(int count, int few, Rng& rng) {
  std::set<int> chosen;
  for (int at = 1; at <= count && few == 0; ++at) chosen.insert(at);
  while (std::ssize(chosen) < std::min(few, count))
    chosen.insert(1 + static_cast<int>(rng.bits64() % static_cast<u64>(count)));
  return chosen;
}

/// Each of `count` calls, as many times in a row as that failure is tried.
inline std::vector<std::pair<int, int>> places_and_times(int count, const Failure& failure) {
  std::vector<std::pair<int, int>> all;
  for (const int times : failure.times)
    for (int at = 1; at <= count; ++at) all.emplace_back(at, times);
  return all;
}

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
