# Targets for libFuzzer, clang's fuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer: the preset `fuzz`, whose
# ORRERY_SANITIZE has "fuzzer-no-link", builds them. tests/fuzz/run runs them.

# The sources that the targets need: what reads files, and what that calls. The sub-commands and most of the checker are
# left out, since compiling them would take longer than the targets run.
foreach(folder data program show/attention tasks/lm tasks/toy tasks/translate tasks/translate/rivals training)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/${folder}/*.cpp)
  list(APPEND fuzzed_sources ${sources})
endforeach()
set(commands lm/export lm/lm lm/minutes lm/saved lm/train toy/attention_map toy/loss_curve toy/saved toy/toy
    training/deadline training/options training/program training/run rivals/samples translate/bootstrap
    translate/score translate/train translate/translate program/openblas_start [a-z_]+_command)
list(JOIN commands | commands)
list(FILTER fuzzed_sources EXCLUDE REGEX "/(${commands})[.]cpp$")
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/autograd/check/gradcheck*.cpp)
list(APPEND fuzzed_sources ${sources} autograd/check/first_nan.cpp autograd/check/scheduling.cpp)
add_library(orrery_fuzzed STATIC ${fuzzed_sources})
orrery_set_up_target(orrery_fuzzed)
target_include_directories(orrery_fuzzed SYSTEM PRIVATE ${SENTENCEPIECE_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
target_link_libraries(orrery_fuzzed PUBLIC orrery_library CLI11::CLI11
                      PRIVATE nlohmann_json::nlohmann_json ${SENTENCEPIECE_TRAIN_LIBRARY} ${SENTENCEPIECE_LIBRARY}
                      ${UTF8PROC_LIBRARY} ${CMAKE_DL_LIBS})
target_compile_definitions(orrery_fuzzed PRIVATE $<TARGET_PROPERTY:orrery_apps,COMPILE_DEFINITIONS>)
target_compile_options(orrery_fuzzed PRIVATE ${ORRERY_QUICK_BUILD})

foreach(name checkpoint config text vocabulary)
  add_executable(fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE orrery_fuzzed orrery_library orrery_options)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)  # brings `main`
  list(APPEND fuzz_targets fuzz_${name})
endforeach()
add_custom_target(orrery_fuzz DEPENDS ${fuzz_targets})
