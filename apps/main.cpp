// Chapter 9. The program `orrery`: its sub-commands, one file each.
#include "apps/program/command.h"
#include "apps/program/crowding.h"
#include "apps/program/openblas_start.h"

#ifndef ORRERY_SANITIZED  // AddressSanitizer's library is not ready so early
// The only functions that run before OpenBLAS's own.
[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const before_libraries)(int, char**, char**) = orrery::guard_openblas_start;
#endif

namespace orrery {
AddCommand add_toy, add_lm, add_translate, add_report, add_inspect, add_doctor, add_gradcheck, add_leakcheck, add_bench,
    add_claims, add_figure, add_trace, add_complete;
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  loop_rules.team = crowding_team;
  return run_program(argc, argv,
                     {add_toy, add_lm, add_translate, add_report, add_inspect, add_doctor, add_gradcheck, add_leakcheck,
                      add_bench, add_claims, add_figure, add_trace, add_complete});
}
