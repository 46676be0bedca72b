// Chapter 9. The machine, the build and the environment of a run: everything that its speed and its bits depend on.
//
//   seed 1, 2 threads, products by the library
//   model of 128013 parameters
// These are the first lines of a run. Whatever makes it take at least twice as long, or fail, follows in a line each; a
// measurement also says what may distort it (apps/program/findings.h).
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "apps/program/system.h"
#include "core/dtype.h"
#include "core/products/blas.h"

namespace orrery {

struct RunStart {
  std::optional<i64> seed{};    ///< nothing if no random number is drawn
  i64 parameters = 0;           ///< numbers the model learns; 0 prints nothing
  double expected_seconds = 0;  ///< the expected time; 0 prints nothing
  bool measured = false;        ///< times are measured: look for a fifth of a second how busy the machine is
  double time_limit = 0;        ///< minutes of --time-limit, if it is given
};
/// Prints the lines, and what is wrong with the machine, the build or the environment: harmful findings, and before a
/// measurement also notes (apps/program/findings.h).
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

}  // namespace orrery
