# Solutions are edits of their starters (apps/book/solutions), and the tests' wrong answers are edits of the solutions. A
# file of edits has a block for each, which ends at an empty line:
#   2.2_walk_1: what is wrong with it
#   expect: what its grade says, of a wrong answer
#   hint: words of the one hint that it gets
# and hunks like those of diff without line numbers: "@@", then lines that begin with "-", "+" or a blank.
#
# As a script it prints a file with an edit:  cmake -D edits=FILE -D name=NAME -D original=FILE -P edits.cmake

# Sets ${result} to the block of ${name}; "" if there is none.
function(find_block edits name result)
  file(READ ${edits} blocks)
  string(FIND "\n\n${blocks}" "\n\n${name}: " start)
  set(block "")
  if(NOT start EQUAL -1)
    string(SUBSTRING "${blocks}\n" ${start} -1 block)
    string(FIND "${block}" "\n\n" end)
    string(SUBSTRING "${block}" 0 ${end} block)
  endif()
  set(${result} "${block}" PARENT_SCOPE)
endfunction()

# Sets ${result} to the text of ${original} with the edit of the block.
function(edit block original result)
  string(FIND "${block}" "\n@@\n" at)
  string(SUBSTRING "${block}" ${at} -1 hunks)
  file(READ ${original} answer)
  while(hunks)
    string(SUBSTRING "${hunks}" 3 -1 hunks)  # after "\n@@"
    string(FIND "${hunks}" "\n@@\n" end)
    string(SUBSTRING "${hunks}" 0 ${end} hunk)
    if(end EQUAL -1)
      set(hunks "")
    else()
      string(SUBSTRING "${hunks}" ${end} -1 hunks)
    endif()
    string(REGEX REPLACE "\n[+][^\n]*" "" before "${hunk}")
    string(REGEX REPLACE "\n[- ]" "\n" before "${before}\n")
    string(REGEX REPLACE "\n-[^\n]*" "" after "${hunk}")
    string(REGEX REPLACE "\n[+ ]" "\n" after "${after}\n")
    string(FIND "${answer}" "${before}" first)
    string(FIND "${answer}" "${before}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
      message(FATAL_ERROR "${original} does not have the lines that this edit changes, or has them twice:\n${block}")
    endif()
    string(REPLACE "${before}" "${after}" answer "${answer}")
  endwhile()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  find_block(${edits} ${name} block)
  edit("${block}" ${original} answer)
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo_append "${answer}")
endif()
