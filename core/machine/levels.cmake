# -D ORRERY_NATIVE=OFF asks for a library that runs on every x86-64 CPU. Three shared libraries are built: for any CPU,
# for CPUs with AVX2 and FMA (x86-64-v3), and for CPUs with AVX-512 (x86-64-v4). No line of C++ chooses among them: the
# dynamic linker first looks into glibc-hwcaps/x86-64-v4 and glibc-hwcaps/x86-64-v3 beside the library, and takes the
# best that the CPU can run (before glibc 2.33 always the one for any CPU). Trainings have equal bits with AVX2 and with
# AVX-512, unless a linear map has at most 16 rows (core/products/thin_product.h) or BLAS computes products. Without FMA
# they have others, since no multiplication is fused with an addition (tests/promises/plain_build_test.cpp). Read by
# CMakeLists.txt.
set(levels "")
set(library_type STATIC)
if(NOT ORRERY_NATIVE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(levels x86-64-v3 x86-64-v4)
  set(library_type SHARED)
endif()

function(orrery_set_up_shared library)
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION})
  # Calls inside the library go straight to their target, not through a table; likewise variables of a thread.
  target_compile_options(${library} PRIVATE -fno-semantic-interposition -ftls-model=initial-exec)
  target_link_options(${library} PRIVATE -Wl,-Bsymbolic-functions)
endfunction()

# Makes orrery_library shared, and adds the libraries of the levels beside it.
function(orrery_add_levels)
  if(NOT levels)
    return()
  endif()
  orrery_set_up_shared(orrery_library)
  foreach(level ${levels})
    add_library(orrery_${level} SHARED ${library_sources})
    orrery_set_up_library(orrery_${level})
    orrery_set_up_shared(orrery_${level})
    target_compile_options(orrery_${level} PRIVATE -march=${level})
    set_target_properties(orrery_${level} PROPERTIES OUTPUT_NAME orrery
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/glibc-hwcaps/${level})
    add_dependencies(orrery_library orrery_${level})
  endforeach()
endfunction()

# This file checks whether the CPU can run all others, so it must itself run on every CPU.
set_source_files_properties(core/machine/cpu_check.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                            SKIP_UNITY_BUILD_INCLUSION ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(core/machine/cpu_check.cpp PROPERTIES COMPILE_OPTIONS "-march=x86-64;-mtune=generic")
endif()
