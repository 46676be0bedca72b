// Chapter 8. The features that compilers use on their own, and which of them this build was compiled for.
//
// A table without code: this file is compiled like the kernels, for a CPU that the program may not be running on.
#include "core/machine/cpu_features.h"

// The text of a macro that is defined as 1 is "1"; the text of an undefined one is its own name.
#define ORRERY_TEXT(macro) #macro
#define ORRERY_COMPILED_FOR(macro) (ORRERY_TEXT(macro)[0] == '1')

namespace orrery {
namespace {
constexpr unsigned ymm = 0x6, zmm = 0xE6;  // XCR0: the registers of SSE and AVX; those and AVX-512's
}

// Intel's manual, volume 2A, CPUID; AMD's, volume 3, appendix E.
constexpr CpuFeature cpu_features[] = {
    {"SSE3", ORRERY_COMPILED_FOR(__SSE3__), CpuAnswers::leaf1_ecx, 0, 0},
    {"SSSE3", ORRERY_COMPILED_FOR(__SSSE3__), CpuAnswers::leaf1_ecx, 9, 0},
    {"SSE4.1", ORRERY_COMPILED_FOR(__SSE4_1__), CpuAnswers::leaf1_ecx, 19, 0},
    {"SSE4.2", ORRERY_COMPILED_FOR(__SSE4_2__), CpuAnswers::leaf1_ecx, 20, 0},
    {"MOVBE", ORRERY_COMPILED_FOR(__MOVBE__), CpuAnswers::leaf1_ecx, 22, 0},
    {"POPCNT", ORRERY_COMPILED_FOR(__POPCNT__), CpuAnswers::leaf1_ecx, 23, 0},
    {"LZCNT", ORRERY_COMPILED_FOR(__LZCNT__), CpuAnswers::extended_ecx, 5, 0},
    {"BMI1", ORRERY_COMPILED_FOR(__BMI__), CpuAnswers::leaf7_ebx, 3, 0},
    {"BMI2", ORRERY_COMPILED_FOR(__BMI2__), CpuAnswers::leaf7_ebx, 8, 0},
    {"AVX", ORRERY_COMPILED_FOR(__AVX__), CpuAnswers::leaf1_ecx, 28, ymm},
    {"F16C", ORRERY_COMPILED_FOR(__F16C__), CpuAnswers::leaf1_ecx, 29, ymm},
    {"FMA", ORRERY_COMPILED_FOR(__FMA__), CpuAnswers::leaf1_ecx, 12, ymm},
    {"AVX2", ORRERY_COMPILED_FOR(__AVX2__), CpuAnswers::leaf7_ebx, 5, ymm},
    {"AVX-VNNI", ORRERY_COMPILED_FOR(__AVXVNNI__), CpuAnswers::leaf7_1_eax, 4, ymm},
    {"FMA4", ORRERY_COMPILED_FOR(__FMA4__), CpuAnswers::extended_ecx, 16, ymm},
    {"XOP", ORRERY_COMPILED_FOR(__XOP__), CpuAnswers::extended_ecx, 11, ymm},
    {"TBM", ORRERY_COMPILED_FOR(__TBM__), CpuAnswers::extended_ecx, 21, 0},
    {"GFNI", ORRERY_COMPILED_FOR(__GFNI__), CpuAnswers::leaf7_ecx, 8, 0},
    {"AVX512F", ORRERY_COMPILED_FOR(__AVX512F__), CpuAnswers::leaf7_ebx, 16, zmm},
    {"AVX512DQ", ORRERY_COMPILED_FOR(__AVX512DQ__), CpuAnswers::leaf7_ebx, 17, zmm},
    {"AVX512IFMA", ORRERY_COMPILED_FOR(__AVX512IFMA__), CpuAnswers::leaf7_ebx, 21, zmm},
    {"AVX512CD", ORRERY_COMPILED_FOR(__AVX512CD__), CpuAnswers::leaf7_ebx, 28, zmm},
    {"AVX512BW", ORRERY_COMPILED_FOR(__AVX512BW__), CpuAnswers::leaf7_ebx, 30, zmm},
    {"AVX512VL", ORRERY_COMPILED_FOR(__AVX512VL__), CpuAnswers::leaf7_ebx, 31, zmm},
    {"AVX512VBMI", ORRERY_COMPILED_FOR(__AVX512VBMI__), CpuAnswers::leaf7_ecx, 1, zmm},
    {"AVX512VBMI2", ORRERY_COMPILED_FOR(__AVX512VBMI2__), CpuAnswers::leaf7_ecx, 6, zmm},
    {"AVX512VNNI", ORRERY_COMPILED_FOR(__AVX512VNNI__), CpuAnswers::leaf7_ecx, 11, zmm},
    {"AVX512BITALG", ORRERY_COMPILED_FOR(__AVX512BITALG__), CpuAnswers::leaf7_ecx, 12, zmm},
    {"AVX512VPOPCNTDQ", ORRERY_COMPILED_FOR(__AVX512VPOPCNTDQ__), CpuAnswers::leaf7_ecx, 14, zmm},
    {"AVX512BF16", ORRERY_COMPILED_FOR(__AVX512BF16__), CpuAnswers::leaf7_1_eax, 5, zmm},
    {"AVX512FP16", ORRERY_COMPILED_FOR(__AVX512FP16__), CpuAnswers::leaf7_edx, 23, zmm},
};
constexpr size_t cpu_feature_count = sizeof cpu_features / sizeof cpu_features[0];

}  // namespace orrery
