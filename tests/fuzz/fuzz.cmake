# Targets for libFuzzer, clang's fuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer: the preset `fuzz`, whose
# ORRERY_SANITIZE has "fuzzer-no-link", builds them. tests/fuzz/run runs them.

# What reads files, of the programs and of the checker. The rest would take longer to compile than the targets run.
foreach(folder attention_page lm program text toy training translate)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/${folder}/*.cpp)
  list(APPEND reading_sources ${sources})
endforeach()
set(commands "lm/(lm|saved|minutes)|toy/(toy|saved|attention_map)|translate/translate|[a-z]+_(command|options)|run")
list(FILTER reading_sources EXCLUDE REGEX "/(${commands})[.]cpp$")
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/autograd/check/gradcheck*.cpp)
list(APPEND reading_sources ${sources} autograd/check/first_nan.cpp autograd/check/scheduling.cpp)
add_library(orrery_reading STATIC EXCLUDE_FROM_ALL ${reading_sources})
target_include_directories(orrery_reading SYSTEM PRIVATE ${SENTENCEPIECE_INCLUDE_DIR})
target_link_libraries(orrery_reading PUBLIC orrery_library CLI11::CLI11
                      PRIVATE orrery_options nlohmann_json::nlohmann_json ${SENTENCEPIECE_TRAIN_LIBRARY}
                      ${SENTENCEPIECE_LIBRARY})
set_target_properties(orrery_reading PROPERTIES UNITY_BUILD ${ORRERY_UNITY} UNITY_BUILD_BATCH_SIZE ${ORRERY_BATCH})
target_compile_definitions(orrery_reading PRIVATE $<TARGET_PROPERTY:orrery_apps,COMPILE_DEFINITIONS>)
target_compile_options(orrery_reading PRIVATE ${ORRERY_QUICK_BUILD})

foreach(name checkpoint config text vocabulary)
  add_executable(fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE orrery_reading orrery_library orrery_options)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)  # brings `main`
  list(APPEND fuzz_targets fuzz_${name})
endforeach()
add_custom_target(orrery_fuzz DEPENDS ${fuzz_targets})
