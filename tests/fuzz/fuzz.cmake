# Targets for libFuzzer, clang's fuzzer: the preset `asan`, whose ORRERY_SANITIZE has "fuzzer-no-link", builds them beside
# the tests, from the same objects. tests/fuzz/run runs them.
foreach(name checkpoint config text vocabulary)
  add_executable(fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE orrery_apps orrery_options)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)  # brings `main`
  list(APPEND fuzz_targets fuzz_${name})
endforeach()
add_custom_target(orrery_fuzz DEPENDS ${fuzz_targets})
