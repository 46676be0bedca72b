# The program `orrery`, the programs of the book, and what compiles exercises. Read by CMakeLists.txt.
find_package(CLI11 QUIET)
orrery_require_package(CLI11_FOUND "CLI11" libcli11-dev)
find_library(SENTENCEPIECE_LIBRARY sentencepiece)
find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train)
find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_trainer.h)
foreach(part LIBRARY TRAIN_LIBRARY INCLUDE_DIR)
  orrery_require_package(SENTENCEPIECE_${part} "SentencePiece" libsentencepiece-dev)
endforeach()
find_library(UTF8PROC_LIBRARY utf8proc)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
foreach(part LIBRARY INCLUDE_DIR)
  orrery_require_package(UTF8PROC_${part} "utf8proc" libutf8proc-dev)
endforeach()
find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark was not found, so most of `orrery bench` cannot measure. "
                 "On Debian and Ubuntu: apt-get install libbenchmark-dev")
endif()

# The program: everything but its entry is a library, so that the tests can call it.
# The folders but two: apps/book has programs of its own, and apps/mine is the reader's. They are not looked for at each
# build, or the first exercise, which makes apps/mine, would configure everything anew.
file(GLOB program_folders LIST_DIRECTORIES true apps/*)
list(FILTER program_folders EXCLUDE REGEX "/(book|mine)$")
list(TRANSFORM program_folders APPEND "/*.cpp")
file(GLOB_RECURSE program_sources CONFIGURE_DEPENDS ${program_folders})
list(REMOVE_ITEM program_sources ${training_sources})
add_library(orrery_apps STATIC ${program_sources})
# From the folder of the installed program to that of the files which come with it.
file(RELATIVE_PATH shared_folder ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/orrery)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(REGEX MATCHALL "-O[0-9a-z]*" optimisation "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
target_compile_definitions(orrery_apps PRIVATE ORRERY_VERSION="${PROJECT_VERSION}"
                           ORRERY_BUILD_TYPE="${CMAKE_BUILD_TYPE}" ORRERY_IS_NATIVE=$<BOOL:${ORRERY_NATIVE}>
                           ORRERY_OPTIMISATION="${optimisation}"
                           ORRERY_SANITIZERS="${ORRERY_SANITIZE}"
                           ORRERY_SHARED_FOLDER="${shared_folder}"
                           ORRERY_SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
target_compile_options(orrery_apps PRIVATE ${ORRERY_QUICK_BUILD})
# The triad is a loop of its own, and what others are measured by. Headers precompiled with -Og would slow it down: GCC
# 12 then takes pointers for values that may change in the loop, and loads every number by itself.
set_source_files_properties(apps/measure/bench/loops.cpp PROPERTIES COMPILE_OPTIONS "$<$<OR:$<CONFIG:Release>,$<CONFIG:>>:-O3>"
                            SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(orrery_apps PUBLIC orrery_training orrery_check orrery_library CLI11::CLI11
                      PRIVATE orrery_grade orrery_options nlohmann_json::nlohmann_json ${SENTENCEPIECE_TRAIN_LIBRARY}
                      ${SENTENCEPIECE_LIBRARY} ${UTF8PROC_LIBRARY} ${CMAKE_DL_LIBS})
target_include_directories(orrery_apps SYSTEM PRIVATE ${SENTENCEPIECE_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
set_source_files_properties(apps/measure/bench/micro.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(benchmark_FOUND)  # one file knows of it
  target_link_libraries(orrery_apps PRIVATE benchmark::benchmark)
  set_source_files_properties(apps/measure/bench/micro.cpp PROPERTIES COMPILE_DEFINITIONS ORRERY_HAS_BENCHMARK)
endif()
orrery_compile_in_batches(orrery_apps)
orrery_share_parsed_headers(orrery_apps)

add_executable(orrery_program apps/main.cpp)
set_target_properties(orrery_program PROPERTIES OUTPUT_NAME orrery)
target_link_libraries(orrery_program PRIVATE orrery_apps orrery_options)

# The programs of the book, one file each: apps/book/ch4/four_derivatives.cpp is ch4_four_derivatives.
file(GLOB book_sources CONFIGURE_DEPENDS apps/book/ch*/*.cpp)
foreach(source ${book_sources})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(chapter ${source} DIRECTORY)
  get_filename_component(chapter ${chapter} NAME)
  set(name ${chapter}_${name})
  list(APPEND book_programs ${name})
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE ${ORRERY_QUICK_BUILD})
  target_link_libraries(${name} PRIVATE orrery_check orrery_library orrery_options)
  orrery_share_parsed_headers(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/book)
  if(NOT ORRERY_TESTS OR ORRERY_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # built when they are run
  endif()
endforeach()

# These train with what `orrery translate`, `orrery pretrain` and `orrery toy` are made of.
target_link_libraries(ch9_translator PRIVATE orrery_apps)
target_link_libraries(ch10_bert PRIVATE orrery_apps)
target_link_libraries(ch11_ranks PRIVATE orrery_apps)
target_compile_definitions(ch9_translator PRIVATE ORRERY_DATA_FOLDER="${PROJECT_SOURCE_DIR}/apps/data")

include(apps/book/grade/grade.cmake)
