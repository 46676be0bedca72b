// Chapter 9. The program `orrery`: its sub-commands, one file each: those of apps/tasks/tasks.cpp, and these.
#include "apps/program/command.h"
#include "apps/program/crowding.h"
#include "apps/program/machine.h"
#include "apps/tasks/tasks.h"

#ifndef ORRERY_SANITIZED  // AddressSanitizer's library is not ready so early
// The only functions that run before OpenBLAS's own.
[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const before_libraries)(int, char**, char**) = orrery::guard_openblas_start;
#endif

namespace orrery {
AddCommand add_report, add_inspect, add_doctor, add_gradcheck, add_leakcheck, add_bench, add_claims, add_figure,
    add_trace, add_complete;
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  loop_rules.team = crowding_team;
  std::vector<AddCommand*> commands;
  for (const ListedTask& task : all_tasks()) commands.push_back(task.add);
  for (AddCommand* add : {add_report, add_inspect, add_doctor, add_gradcheck, add_leakcheck, add_bench, add_claims,
                          add_figure, add_trace, add_complete})
    commands.push_back(add);
  return run_program(argc, argv, commands);
}
