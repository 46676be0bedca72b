# The exercises of the book, each with its starter, its solution, its wrong answers and a starter whose blanks throw,
# compiled together: one file for each chapter, where every attempt stands in a namespace of its own beside the grader
# (apps/book/grade/prelude.h).
set(exercise_folder ${PROJECT_BINARY_DIR}/tests/exercises)
set(exercise_sources)
set(exercise_chapters)

include(${PROJECT_SOURCE_DIR}/apps/book/grade/edits.cmake)

# Appends an attempt to ${text} and ${list}. Of a wrong answer, ARGN is what its grade must say.
macro(add_attempt kind file)
  math(EXPR attempt "${attempt} + 1")
  file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
  string(APPEND text "namespace attempt_${chapter}_${attempt} {\n#include \"${file}\"\n#include \"${grader}\"\n}\n")
  string(APPEND list "          {Attempt::${kind}, \"${shown}\", R\"(${ARGN})\", attempt_${chapter}_${attempt}::grade},\n")
endmacro()

# Writes ${file}: ${original} with the edit ${name} of ${edits}, whose block is then in ${block}; no file if there is none.
macro(write_edited edits name original file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${edits} ${original})
  find_block(${edits} ${name} block)
  if(block)
    edit("${block}" ${original} answer)
    file(CONFIGURE OUTPUT ${file} CONTENT "${answer}" @ONLY)
  endif()
endmacro()

# Adds an exercise of ${chapter} to ${text} and ${list}: its solution, its starter, one whose blanks throw, wrong answers.
macro(add_exercise shown name number starter)
  get_filename_component(folder ${starter} DIRECTORY)
  set(grader ${folder}/grades.h)
  set(solution ${exercise_folder}/${name}.cpp)
  write_edited(${PROJECT_SOURCE_DIR}/apps/book/solutions/${edits} ${name} ${starter} ${solution})
  string(APPEND text "#define EXERCISE ${number}\n")
  string(APPEND list "      {\"${shown}\", {\n")
  add_attempt(solution ${solution})
  add_attempt(starter ${starter})
  # The blank of 3.1 stands in a parallel loop, which no exception can leave; bugs have no blank.
  if(NOT ${name} MATCHES "^(3.1_softplus|bug_.*)$")
    file(READ ${starter} throwing)
    string(REGEX REPLACE "\n([^\n]*// YOUR CODE)" "\nthrow std::runtime_error(\"blank\");\n\\1" throwing "${throwing}")
    file(CONFIGURE OUTPUT ${exercise_folder}/${name}_throws.cpp CONTENT "${throwing}" @ONLY)
    add_attempt(throwing ${exercise_folder}/${name}_throws.cpp)
  endif()
  foreach(wrong RANGE 1 12)
    set(file ${exercise_folder}/${name}_${wrong}.cpp)
    write_edited(${CMAKE_CURRENT_SOURCE_DIR}/apps/book/wrong/${edits} ${name}_${wrong} ${solution} ${file})
    if(NOT block)
      break()
    endif()
    if(NOT block MATCHES "\nexpect: ([^\n]*)\nhint: ([^\n]+)\n")
      message(FATAL_ERROR "In wrong/${edits}, ${name}_${wrong} does not say what to expect, and which hint")
    endif()
    set(expected "${CMAKE_MATCH_1}")
    string(APPEND hints "      {\"${name}_${wrong}\", R\"(${CMAKE_MATCH_2})\"},\n")
    math(EXPR added "${added} + 1")
    add_attempt(wrong ${file} "${expected}")
  endforeach()
  string(APPEND list "      }},\n")
  string(APPEND text "#undef EXERCISE\n")
endmacro()

macro(begin_chapter name file_of_edits)
  set(chapter ${name})
  set(edits ${file_of_edits})
  set(text "#include \"apps/book/grade/prelude.h\"\n#include \"tests/apps/book/exercises.h\"\n")
  set(list "")
  set(attempt 0)
  set(added 0)
endmacro()

# Error: the wrong answers have a block that is no answer to an exercise, or whose number does not follow the one before.
macro(end_chapter)
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/apps/book/wrong/${edits} blocks)
  string(REGEX MATCHALL "\nexpect: " all "${blocks}")
  list(LENGTH all count)
  if(NOT count EQUAL added)
    message(FATAL_ERROR "Of ${count} wrong answers in tests/apps/book/wrong/${edits}, ${added} have the name of an "
                        "exercise and are numbered from 1")
  endif()
  string(APPEND text "namespace orrery::book {\nExercises exercises_${chapter}() {\n  return {\n${list}  };\n}\n}\n")
  file(CONFIGURE OUTPUT ${exercise_folder}/chapter_${chapter}.cpp CONTENT "${text}" @ONLY)
  list(APPEND exercise_sources ${exercise_folder}/chapter_${chapter}.cpp)
  list(APPEND exercise_chapters ${chapter})
  string(APPEND declared "Exercises exercises_${chapter}();\n")
  string(APPEND switch "  if (chapter == \"${chapter}\") return exercises_${chapter}();\n")
endmacro()

set(switch "")
set(declared "")
set(hints "")  # apart from the attempts, so that another word compiles no chapter
foreach(number RANGE 11)
  file(GLOB starters CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/book/ch${number}/exercises/*.cpp)
  begin_chapter(${number} ch${number}.diff)
  foreach(starter ${starters})
    get_filename_component(name ${starter} NAME_WE)
    string(REGEX REPLACE "_.*" "" exercise ${name})
    add_exercise(${chapter}.${name} ${chapter}.${name} ${exercise} ${starter})
  endforeach()
  end_chapter()
endforeach()

# The programs with a mistake that a student repairs: the copy as given, its solution, and wrong repairs.
file(GLOB bugs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/book/bugs/[0-9]*.cpp)
begin_chapter(bugs bugs.diff)
foreach(bug ${bugs})
  get_filename_component(number ${bug} NAME_WE)
  add_exercise(bug.${number} bug_${number} ${number} ${bug})
endforeach()
end_chapter()

file(CONFIGURE OUTPUT ${exercise_folder}/chapters.cpp @ONLY CONTENT
"#include <map>\n\n#include \"tests/apps/book/exercises.h\"\nnamespace orrery::book {\n${declared}
Exercises exercises_of(const std::string& chapter) {\n${switch}  return {};\n}\n
std::string hint_of(const std::string& attempt) {
  static const std::map<std::string, std::string> hints{\n${hints}  };
  return hints.at(attempt);\n}\n}\n")

set(exercise_sources apps/book/exercises.cpp ${exercise_folder}/chapters.cpp ${exercise_sources})
add_executable(orrery_exercises EXCLUDE_FROM_ALL ${exercise_sources})  # a tenth of the whole build; tests/run slow
# What is linked last has the last word: clang takes the last option about a warning.
add_library(orrery_answer_options INTERFACE)
target_compile_options(orrery_answer_options INTERFACE ${ORRERY_ANSWER_OPTIONS})
target_link_libraries(orrery_exercises PRIVATE orrery_grade orrery_options orrery_answer_options)
target_compile_definitions(orrery_exercises PRIVATE ORRERY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_precompile_headers(orrery_exercises PRIVATE "${PROJECT_SOURCE_DIR}/apps/book/grade/prelude.h")
foreach(chapter ${exercise_chapters})
  add_test(NAME book/exercises_${chapter} COMMAND orrery_exercises ${chapter})
  string(REPLACE bugs 9 label ${chapter})
  set_property(TEST book/exercises_${chapter} APPEND PROPERTY LABELS ch${label} slow)
endforeach()
