// Chapter 8. What a build asks of the CPU it runs on.
//
// With -march=native the compiler uses every instruction that the building machine has. On an older CPU such a program
// would end at the first of them with "Illegal instruction", perhaps before main. So a list of what the build was
// compiled for is compared with what the CPU says of itself, before any other code of the program runs; the comparing
// code is compiled for every x86-64 (CMakeLists.txt), and uses nothing of C++'s library, whose inline functions the
// linker may take from elsewhere. This belongs to the library: whoever links it would meet the same end.
// Serves: core/machine/parallel.h
#pragma once

#include <cstddef>

namespace orrery {

/// The answers of the instructions CPUID (Intel's manual, volume 2A) and XGETBV that features stand in.
struct CpuAnswers {
  enum Word { leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax, extended_ecx, word_count };
  unsigned words[word_count];
  unsigned saved_registers;  ///< the low half of XCR0: the registers that the operating system keeps for a program
};

/// One feature: where the CPU tells of it, and whether this build was compiled for it.
struct CpuFeature {
  const char* name;
  bool needed;
  CpuAnswers::Word word;
  unsigned bit;
  unsigned registers;  ///< bits that XCR0 needs besides
};
extern const CpuFeature cpu_features[];
extern const size_t cpu_feature_count;

/// Writes to `message` what is to be said if `features` has needed ones that `cpu` lacks, names them and says how to
/// build for this CPU; returns its length, 0 if nothing is lacking. A message that is too long is cut.
size_t lacking_features(const CpuFeature* features, size_t count, const CpuAnswers& cpu, char* message, size_t size);

/// What this CPU answers.
CpuAnswers cpu_answers();

}  // namespace orrery
