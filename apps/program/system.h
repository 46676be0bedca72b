// Chapter 9. What Linux tells of the machine in its files: cores, memory, how busy it is, limits of control groups.
//
// Every function takes texts or a folder, so that the tests can give it those of other machines. What a system does not
// tell is left out, never an error.
#pragma once

#include <string>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// The files below a folder that stands for "/".
class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}
  /// The text of a file such as "/proc/meminfo"; "" if it cannot be read.
  std::string text(const std::string& path) const;
  /// The number that a file consists of; `otherwise` if it is something else.
  i64 number(const std::string& path, i64 otherwise) const;
  /// The names in a folder, sorted.
  std::vector<std::string> names(const std::string& folder) const;

 private:
  std::string root_;
};

/// The bytes that a field of /proc/meminfo states, such as "MemAvailable"; -1 if it is not there.
i64 bytes_in_meminfo(const std::string& meminfo, const std::string& field);

/// The number of cores in the field Cpus_allowed_list of /proc/self/status, such as "0-3,8"; 0 if it is not there.
int cores_allowed(const std::string& status);

/// The folders in which the limits of a process stand, the innermost first, for a controller such as "memory". Both
/// versions of control groups are known; `self_cgroup` is the text of /proc/self/cgroup.
std::vector<std::string> group_folders(const std::string& self_cgroup, const std::string& controller);

/// How many cores' time the control groups of this process grant it; 0 if there is no limit.
double granted_cores(const SystemFiles& files);

/// Bytes of memory.
struct SystemMemory {
  i64 total = 0;         ///< what this process may use: the machine's memory, or less by a control group
  i64 available = 0;     ///< what is free of it, or can be freed without swapping
  bool limited = false;  ///< by a control group
};
SystemMemory memory_of(const SystemFiles& files);

/// How many cores were busy between two readings of /proc/stat, and how many of them the host of a virtual machine took
/// away; 0 if the texts do not tell.
struct BusyCores {
  double busy = 0, stolen = 0;
};
BusyCores busy_cores(const std::string& before, const std::string& after, int cores);

}  // namespace orrery
