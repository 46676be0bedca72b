# What only makes builds fast: batches of files, headers that are parsed once, how callers of the library are optimised,
# and how much memory the compiler may take. Read by CMakeLists.txt. Without it, everything would be built the same, in
# twice the time (apps/measure/bench/README.md).
option(ORRERY_UNITY "Compile many files at once: half the work for all of them, more for one that has changed" ON)
set(ORRERY_BATCH 24 CACHE STRING "Files to compile at once")
set(ORRERY_CALLERS -Og CACHE STRING "How the checker and the programs are optimised, in a build of type Release or of none")

# The checker and the programs call the library, and have few loops of their own: -Og saves a third of the build.
set(ORRERY_QUICK_BUILD $<$<OR:$<CONFIG:Release>,$<CONFIG:>>:${ORRERY_CALLERS}>)

# GCC 12 collects garbage once it holds 128 MiB. With 500 MB it takes 8 to 10 % less time, and 200 MB more of about 1 GB.
# Ninja runs two compilers more than there are cores.
cmake_host_system_information(RESULT host QUERY NUMBER_OF_LOGICAL_CORES TOTAL_PHYSICAL_MEMORY)
list(POP_FRONT host cores megabytes)
math(EXPR megabytes_each "${megabytes} / (${cores} + 2)")
if(megabytes_each GREATER 1500)
  target_compile_options(orrery_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)
endif()

# Batches are of ORRERY_BATCH files, so that not every file reads nlohmann/json or the whole of nn by itself. In a
# batch, no two unnamed namespaces may define the same name: an overload of another file could be called silently. No
# name has to be longer for that: the list `compiled_alone` below takes a file out of its batch. For the tests see
# tests/CMakeLists.txt.
function(orrery_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ORRERY_UNITY} UNITY_BUILD_BATCH_SIZE ${ORRERY_BATCH})
endfunction()

# Headers that nearly every file reads are parsed once for all files. The preset clang-alone does without this, and so
# finds files of the library or the programs that forget to include what they use. Each optimisation level has headers
# of its own: with those made for -O3, a file with a lower level would take half as long again to compile.
function(orrery_parse_headers_once target)
  target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <functional> <map> <memory> <sstream> <string>
                            <vector> "${PROJECT_SOURCE_DIR}/core/tensor.h")
endfunction()
# Lets a target use the headers that were parsed for orrery_check.
function(orrery_share_parsed_headers target)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM orrery_check)
  endif()
endfunction()

# Files that read nlohmann/json stand first, so that they share a batch: it costs seconds wherever it is read.
set(json_sources core/files/json.cpp core/files/safetensors.cpp core/files/safetensors_header.cpp
    nn/models/gpt.cpp nn/models/transformer.cpp)
list(TRANSFORM json_sources PREPEND ${PROJECT_SOURCE_DIR}/)
list(REMOVE_ITEM library_sources ${json_sources})
list(PREPEND library_sources ${json_sources})

# Files with long loops (kernels) take longer to compile than the headers that they read, so each is compiled alone;
# and so is a file that shares a name with another of its batch.
file(GLOB_RECURSE compiled_alone CONFIGURE_DEPENDS core/*.cpp autograd/ops/*.cpp optim/*.cpp)
list(APPEND compiled_alone ${PROJECT_SOURCE_DIR}/nn/attention/key_value_cache.cpp
     ${PROJECT_SOURCE_DIR}/nn/generate/beam_search.cpp ${PROJECT_SOURCE_DIR}/nn/generate/constraints.cpp
     ${PROJECT_SOURCE_DIR}/nn/generate/sampling.cpp)
list(REMOVE_ITEM compiled_alone ${json_sources})
set_source_files_properties(${compiled_alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(ORRERY_SANITIZE)
  # Under a sanitizer the loop of this file takes most of the time of a small training. -O3 leaves out the checks that
  # it can prove unnecessary. The precompiled headers were made with other options, and do not fit.
  set_source_files_properties(core/products/small_product.cpp PROPERTIES COMPILE_OPTIONS -O3
                              SKIP_PRECOMPILE_HEADERS ON)
endif()
