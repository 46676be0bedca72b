// Chapter 9. Whether OpenBLAS is needed, and gets the addresses that it needs. Runs before libraries are ready, so it
// uses only functions of the C library.
#include "apps/program/machine.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace orrery {
namespace {

constexpr rlim_t addresses_of_thread = rlim_t{128} << 20;  // OpenBLAS 0.3.21 on x86-64

bool asks_for_text(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0 ||
           std::strcmp(argument, "--version") == 0;
  });
}

// The C library does not know the environment yet.
int number_in(char** environment, std::string_view variable) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with(variable)) return std::atoi(*environment + variable.size());
  }
  return 0;
}

rlim_t threads_of_openblas(char** environment) {
  cpu_set_t allowed;
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int asked = number_in(environment, "OMP_NUM_THREADS=");
  return static_cast<rlim_t>(asked > 0 ? std::min(asked, cores) : cores);
}

rlim_t addresses_in_use() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void guard_openblas_start(int argc, char** argv, char** environment) {
  // OpenBLAS's variable that tells whether its threads and their memory are there. A build without threads has none.
  int* const started = static_cast<int*>(dlsym(RTLD_DEFAULT, "blas_server_avail"));
  if (started != nullptr && asks_for_text(argc, argv)) {
    *started = 1;
    return;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const rlim_t needed = addresses_in_use() + threads_of_openblas(environment) * addresses_of_thread;
  if (needed <= limit.rlim_cur) return;
  std::fprintf(
      stderr,
      "orrery: ulimit -v allows %lu MB of addresses, and OpenBLAS needs %lu MB to start its threads; raise the "
      "limit, or set OMP_NUM_THREADS=1\n",
      limit.rlim_cur >> 20, needed >> 20);
  _exit(1);
}

}  // namespace orrery
