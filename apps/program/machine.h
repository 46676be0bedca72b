// Chapter 9. The machine, the build and the environment of a run: everything that its speed and its bits depend on.
//
//   seed 1, 2 threads, products by the library
//   model of 128013 parameters
// These are the first lines of a run. Whatever makes it take at least twice as long, or fail, follows in a line each; a
// measurement also says what may distort it. `orrery doctor` prints all findings, and measures as well
// (apps/measure/doctor/checks.h).
// What Linux tells of a machine in its files is read from texts or a folder, and findings look only at values that were
// read before, so that tests can describe any machine. What a system does not tell is left out, never an error.
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/products/blas.h"

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

struct RunStart {
  std::optional<i64> seed{};    ///< nothing if no random number is drawn
  i64 parameters = 0;           ///< numbers the model learns; 0 prints nothing
  double expected_seconds = 0;  ///< the expected time; 0 prints nothing
  bool measured = false;        ///< times are measured: look for a fifth of a second how busy the machine is
  double time_limit = 0;        ///< minutes of --time-limit, if it is given
};
/// Prints the lines, and what is wrong with the machine, the build or the environment: harmful findings, and before a
/// measurement also notes.
void print_start(std::ostream& out, const RunStart& start);

/// The size of this machine's memory in bytes.
i64 physical_memory();
/// Limits what tensors may take (core/machine/memory.h) to so many megabytes; 0: to nine tenths of what is free now.
void limit_tensors(i64 megabytes = 0);
/// Error of `program`, before a model with so many parameters is made: they do not fit into that.
void check_parameters_fit(const std::string& program, i64 parameters);

/// The name of the CPU, such as "AMD EPYC 9B45"; "unknown" if the system does not tell.
std::string cpu_name();

/// How the program was built.
struct Build {
  std::string type;          ///< CMake's, such as "Release"
  std::string optimisation;  ///< of the library, such as "-O3"
  std::string sanitizers;    ///< such as "address,undefined"; "" for none
  VectorLevel level = VectorLevel::baseline;
};

/// Everything that `findings` look at. Reading it takes about a millisecond.
struct Machine {
  std::string cpu;
  VectorLevel level = VectorLevel::baseline;  ///< of the CPU
  Build build;
  int cores = 1;           ///< of the machine
  int allowed = 1;         ///< of these, those that this process may run on
  double granted = 0;      ///< how many cores' time its control groups grant; 0: no limit
  int threads = 1;         ///< of a run
  bool uses_blas = false;  ///< for the products of a run
  bool uses_bf16 = false;
  BlasInfo blas;
  std::map<std::string, std::string> environment;  ///< of its variables, those that findings look at
  SystemMemory memory;
};
/// Asks the system, OpenBLAS and the environment.
Machine read_machine();

/// Watches this machine for a fifth of a second, without computing: the cores that others keep busy.
BusyCores watch_cores(int cores);

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

/// Called before libraries start. For --help and --version, OpenBLAS does not start, and takes nothing. Otherwise,
/// where addresses are limited (ulimit -v) to fewer than it needs, the program ends with a message; OpenBLAS would ask
/// for them again and again, for ever.
void guard_openblas_start(int argc, char** argv, char** environment);

}  // namespace orrery
