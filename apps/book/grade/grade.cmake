# What grades the exercises of the book, and how a reader's own files are compiled: apps/run does that by itself, with the
# scripts and the headers that are made here, so that options and libraries are written down once.
add_library(orrery_grade STATIC apps/book/grade/grader.cpp)
target_compile_options(orrery_grade PRIVATE ${ORRERY_QUICK_BUILD})
target_link_libraries(orrery_grade PUBLIC orrery_check orrery_library PRIVATE orrery_options)
orrery_share_parsed_headers(orrery_grade)

# An answer is compiled often and runs once; a blank may leave names unused; a std::vector asked beyond its end says so.
set(ORRERY_ANSWER_OPTIONS $<$<CONFIG:Release>:-O0> -Wno-unused-parameter -Wno-unused-variable
    -Wno-unused-but-set-variable -Wno-unused-function -D_GLIBCXX_ASSERTIONS)

set(reader_folder ${PROJECT_BINARY_DIR}/reader)
separate_arguments(reader_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${OpenMP_CXX_FLAGS}")
set(reader_options -std=c++20 ${reader_flags} -I${PROJECT_SOURCE_DIR}
    $<TARGET_PROPERTY:orrery_options,INTERFACE_COMPILE_OPTIONS>)

# ${reader_folder}/NAME [compiler's arguments]: warnings are shown, and stop nobody.
function(write_compiler name)
  set(options "$<FILTER:${reader_options};${ARGN},EXCLUDE,^(-Werror)?$>")
  file(GENERATE OUTPUT ${reader_folder}/${name}
       CONTENT "#!/bin/sh\nexec '${CMAKE_CXX_COMPILER}' '$<JOIN:${options},' '>' \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()
write_compiler(compile_answer ${ORRERY_ANSWER_OPTIONS})
write_compiler(compile_program ${ORRERY_QUICK_BUILD})
set(reader_libraries $<TARGET_FILE:orrery_grade> $<TARGET_FILE:orrery_check> $<TARGET_FILE:orrery_library> ${OPENBLAS_LIBRARY}
    ${OpenMP_CXX_LIBRARIES} $<TARGET_PROPERTY:orrery_options,INTERFACE_LINK_OPTIONS>)
file(GENERATE OUTPUT ${reader_folder}/libraries CONTENT "\"$<JOIN:$<FILTER:${reader_libraries},EXCLUDE,^$>,\"\n\">\"\n")

# The headers of an answer, read once: GCC takes prelude.h.gch for prelude.h, clang prelude.h.pch.
file(CONFIGURE OUTPUT ${reader_folder}/prelude.h CONTENT "#include \"apps/book/grade/prelude.h\"\n")
set(compiled_prelude ${reader_folder}/prelude.h.gch)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(compiled_prelude ${reader_folder}/prelude.h.pch)
endif()
add_custom_command(OUTPUT ${compiled_prelude}
                   COMMAND ${reader_folder}/compile_answer -x c++-header ${reader_folder}/prelude.h -o ${compiled_prelude}
                           -MD -MT ${compiled_prelude} -MF ${reader_folder}/prelude.d
                   DEPENDS ${reader_folder}/compile_answer ${reader_folder}/prelude.h DEPFILE ${reader_folder}/prelude.d
                   COMMENT "Reading the headers of the exercises" VERBATIM)
add_custom_target(orrery_reader DEPENDS ${compiled_prelude})
add_dependencies(orrery_reader orrery_grade)
