// Chapter 8. What a build needs from the CPU it runs on.
//
// With -march=native, the compiler uses every instruction of the building machine. On an older CPU, such a program
// would end with "Illegal instruction", perhaps before main. So before any other code of the program runs, the features
// that the build was compiled for are compared with those of the CPU. The comparison is compiled for every x86-64
// (CMakeLists.txt). It uses nothing of C++'s library, since the linker may take that library's inline functions from
// files compiled for a newer CPU. It is part of the library, since every program that links the library needs it.
#pragma once

#include <cstddef>

namespace orrery {

/// Those results of the instructions CPUID (Intel's manual, volume 2A) and XGETBV that describe features.
struct CpuAnswers {
  enum Word { leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax, extended_ecx, word_count };
  unsigned words[word_count];
  unsigned saved_registers;  ///< the low half of XCR0: the registers that the operating system saves
};

/// One feature: where the CPU reports it, and whether this build was compiled for it.
struct CpuFeature {
  const char* name;
  bool needed;
  CpuAnswers::Word word;
  unsigned bit;
  unsigned registers;  ///< bits of XCR0 that it also needs
};
extern const CpuFeature cpu_features[];
extern const size_t cpu_feature_count;

/// If `cpu` lacks needed features, writes a message that names them and says how to build for this CPU. Returns the
/// length of the message, 0 if nothing is lacking. A message that is too long is cut.
size_t lacking_features(const CpuFeature* features, size_t count, const CpuAnswers& cpu, char* message, size_t size);

/// The results for this CPU.
CpuAnswers cpu_answers();

}  // namespace orrery
