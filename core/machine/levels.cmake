# A library for every x86-64 CPU, which is what -D ORRERY_NATIVE=OFF asks for. It is shared, and there are three of it:
# for any CPU, for CPUs with AVX2 and FMA (x86-64-v3), and for CPUs with AVX-512 (x86-64-v4). The dynamic linker looks into
# glibc-hwcaps/x86-64-v4 and glibc-hwcaps/x86-64-v3 beside a library first, and takes the best one that the CPU can run
# (glibc 2.33 or newer; others take the plain one). So no line of C++ has to choose. With AVX2 and with AVX-512 a training
# has the same bits; without them it has others, since no multiplication is fused with an addition
# (tests/promises/plain_build_test.cpp). Read by CMakeLists.txt.
function(set_up_shared library)
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION})
  # Calls inside the library go straight to their target, not through a table; likewise variables of a thread.
  target_compile_options(${library} PRIVATE -fno-semantic-interposition -ftls-model=initial-exec)
  target_link_options(${library} PRIVATE -Wl,-Bsymbolic-functions)
endfunction()

set_up_shared(orrery_library)
foreach(level ${levels})
  add_library(orrery_${level} SHARED ${library_sources})
  set_up_engine(orrery_${level})
  set_up_shared(orrery_${level})
  target_compile_options(orrery_${level} PRIVATE -march=${level})
  set_target_properties(orrery_${level} PROPERTIES OUTPUT_NAME orrery
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/glibc-hwcaps/${level})
  add_dependencies(orrery_library orrery_${level})
endforeach()
