// Chapter 8. A library to preload (LD_PRELOAD): a program that calls a product of BLAS ends with exit code 3.
#include <unistd.h>

extern "C" {
[[noreturn]] void cblas_sgemm() { _exit(3); }
[[noreturn]] void cblas_dgemm() { _exit(3); }
}
