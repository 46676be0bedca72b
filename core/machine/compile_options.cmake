# How files are compiled: ours (orrery_options), and the loops of a user (loop_options). Read by CMakeLists.txt.
set(CMAKE_CXX_FLAGS_RELEASE ${ORRERY_LEVEL})

# How loops are compiled, here and in the files of a user, whose own elementwise operations are compiled there: the
# library's targets hand these options on. No option reorders arithmetic, so -ffast-math is not
# among them. Loops with sqrt and with selections become vector code, because nothing here reads errno after a
# mathematical function (-fno-math-errno) or uses floating-point traps (-fno-trapping-math).
set(loop_options -fno-math-errno -fno-trapping-math)
if(ORRERY_NATIVE)
  list(APPEND loop_options -march=native)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # GCC for AMD splits multiply-adds that follow one another into multiplications and additions, but not in every loop:
  # the bits of a product would depend on how many rows it has.
  list(APPEND loop_options $<$<CXX_COMPILER_ID:GNU>:--param=avoid-fma-max-bits=0>)
endif()

# A user's target with the property ORRERY_PLAIN is compiled with options of its own alone.
function(orrery_hand_on_loop_options library)
  foreach(option ${loop_options})
    target_compile_options(${library} INTERFACE
                           $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:ORRERY_PLAIN>>>>:${option}>)
  endforeach()
endfunction()

add_library(orrery_options INTERFACE)
target_compile_options(orrery_options INTERFACE -Wall -Wextra -Wpedantic ${loop_options})
if(ORRERY_WERROR)
  target_compile_options(orrery_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees std::string overlap and run over inside its own operator+ (GCC bug 105651 and its relatives), and with
  # precompiled headers it does not keep quiet about system headers.
  target_compile_options(orrery_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                         -Wno-stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # A loop left scalar is slower, not wrong. A comma that joins statements hides one of them.
  target_compile_options(orrery_options INTERFACE -Wno-pass-failed -Wcomma)
endif()
if(ORRERY_SANITIZE)
  target_compile_options(orrery_options INTERFACE -fsanitize=${ORRERY_SANITIZE} -fno-sanitize-recover=all)
  target_compile_definitions(orrery_options INTERFACE ORRERY_SANITIZED)  # for tests that a sanitizer would disturb
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # As GCC's manual says, this warning gives false alarms with sanitizers.
    target_compile_options(orrery_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(orrery_options INTERFACE -fsanitize=${ORRERY_SANITIZE})
  if(ORRERY_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Objects of GCC's standard library, which has no sanitizer, were made without the type information it looks for.
    target_compile_options(orrery_options INTERFACE -fno-sanitize=vptr)
  endif()
endif()
