// Chapter 9. What OpenBLAS does when it is loaded, before main: it takes 128 MB of addresses for each thread.
#pragma once

namespace orrery {

/// Called before libraries start. For --help and --version, OpenBLAS does not start, and takes nothing. Otherwise,
/// where addresses are limited (ulimit -v) to fewer than it needs, the program ends with a message; OpenBLAS would ask
/// for them again and again, for ever.
void guard_openblas_start(int argc, char** argv, char** environment);

}  // namespace orrery
