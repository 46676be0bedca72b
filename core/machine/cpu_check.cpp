// Chapter 8. The comparison that runs before all other code. Compiled for every x86-64, and without C++'s library.
#include <unistd.h>

#include "core/machine/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace orrery {
namespace {

// Text in a buffer of fixed size; what does not fit is cut off.
struct Message {
  char* text;
  size_t size, length = 0;

  void add(const char* part) {
    while (*part != '\0' && length < size) text[length++] = *part++;
  }
};

bool has(const CpuAnswers& cpu, const CpuFeature& feature) {
  return (cpu.words[feature.word] >> feature.bit & 1) != 0 &&
         (cpu.saved_registers & feature.registers) == feature.registers;
}

}  // namespace

size_t lacking_features(const CpuFeature* features, size_t count, const CpuAnswers& cpu, char* message, size_t size) {
  Message line{message, size};
  for (size_t i = 0; i < count; ++i) {
    if (!features[i].needed || has(cpu, features[i])) continue;
    line.add(line.length == 0 ? "orrery: this program was built for a CPU that has " : ", ");
    line.add(features[i].name);
  }
  if (line.length > 0)
    line.add(
        "; this one has not. Remove the build folder and build on this machine, or configure with -D ORRERY_NATIVE=OFF "
        "for any CPU\n");
  return line.length;
}

CpuAnswers cpu_answers() {
  CpuAnswers answers{};
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) answers.words[CpuAnswers::leaf1_ecx] = c;
  constexpr unsigned os_tells = 1u << 27;  // OSXSAVE: XGETBV may be used
  if ((c & os_tells) != 0) {
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    answers.saved_registers = low;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    answers.words[CpuAnswers::leaf7_ebx] = b;
    answers.words[CpuAnswers::leaf7_ecx] = c;
    answers.words[CpuAnswers::leaf7_edx] = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) answers.words[CpuAnswers::leaf7_1_eax] = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) answers.words[CpuAnswers::extended_ecx] = c;
#endif
  return answers;
}

}  // namespace orrery

// core/machine/memory.cpp refers to this, so that every program that uses the library contains this file.
extern "C" const char orrery_checks_the_cpu;
const char orrery_checks_the_cpu = 1;

#if defined(__x86_64__)
// 101 is the first priority that is not reserved; it comes before the constructors of all static objects.
__attribute__((constructor(101))) static void check_cpu() {
  char message[1024];
  const size_t length = orrery::lacking_features(orrery::cpu_features, orrery::cpu_feature_count, orrery::cpu_answers(),
                                                 message, sizeof message);
  if (length == 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, length);
  _exit(1);
}
#endif
