# cmake -DPROGRAM=… -DPREFIX=… -DSIZE=… -DWITHOUT=… -DSLOW=… -DLABELS=… -DENVIRONMENT=… -DOUT=… -P Groups.cmake
#
# Divides the tests of a GoogleTest program into groups for CTest, each of which is one process: a
# suite, or parts of it if it has more than SIZE tests. A part of a suite with parameters has all
# tests of some parameters, so that whatever the tests of a parameter share is made only once.
# WITHOUT is empty, or a minus sign and patterns of tests to leave out. A group whose name matches
# SLOW gets the label slow, and starts before the quick ones. The first line of OUT counts the
# tests.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests "--gtest_filter=*${WITHOUT}"
                OUTPUT_VARIABLE _listing COMMAND_ERROR_IS_FATAL ANY)
# The text behind a name may contain a list's separators and brackets; it is removed.
string(REGEX REPLACE "[ ]*#[^\n]*" "" _listing "${_listing}")
string(REPLACE "\n" ";" _lines "${_listing}")

set(_count 0)
set(_script "")
# add_group(NAME PATTERN…): adds one test of CTest.
function(add_group name)
  list(JOIN ARGN ":" _patterns)
  set(_labels ${LABELS})
  set(_cost 0)
  if(SLOW AND name MATCHES "${SLOW}")
    list(APPEND _labels slow)
    set(_cost 150)
  endif()
  string(APPEND _script
    "add_test([==[${PREFIX}.${name}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${_patterns}${WITHOUT}]==])\n"
    "set_tests_properties([==[${PREFIX}.${name}]==] PROPERTIES SKIP_RETURN_CODE 77\n"
    "  LABELS [==[${_labels}]==] COST ${_cost} ENVIRONMENT [==[${ENVIRONMENT}]==])\n")
  set(_script "${_script}" PARENT_SCOPE)
endfunction()

# add_parts(SUITE JOINT EACH NAME…): adds groups of about SIZE tests, where a name stands for EACH
# tests.
function(add_parts suite joint each)
  list(LENGTH ARGN _names)
  math(EXPR _most "(${SIZE} + ${each} - 1) / ${each}")
  math(EXPR _parts "(${_names} + ${_most} - 1) / ${_most}")
  foreach(_part RANGE 1 ${_parts})
    math(EXPR _from "(${_part} - 1) * ${_names} / ${_parts}")
    math(EXPR _length "${_part} * ${_names} / ${_parts} - ${_from}")
    list(SUBLIST ARGN ${_from} ${_length} _some)
    list(GET _some 0 _title)
    if(_length GREATER 1)
      list(GET _some -1 _last)
      string(APPEND _title "..${_last}")
    endif()
    list(TRANSFORM _some PREPEND "${suite}${joint}")
    add_group("${suite}/${_title}" ${_some})
  endforeach()
  set(_script "${_script}" PARENT_SCOPE)
endfunction()

# Adds a suite's tests, or their parameters if they have any.
macro(finish_suite)
  list(LENGTH _tests _number)
  math(EXPR _count "${_count} + ${_number}")
  if(_number GREATER SIZE AND _parameters)
    list(REMOVE_DUPLICATES _parameters)
    list(LENGTH _parameters _of)
    math(EXPR _each "(${_number} + ${_of} - 1) / ${_of}")
    add_parts("${_suite}" ".*/" ${_each} ${_parameters})
  elseif(_number GREATER SIZE)
    add_parts("${_suite}" "." 1 ${_tests})
  elseif(_number)
    add_group("${_suite}" "${_suite}.*")
  endif()
endmacro()

set(_tests "")
foreach(_line ${_lines} "end.")
  if(_line MATCHES "^  (.*)$")
    list(APPEND _tests "${CMAKE_MATCH_1}")
    if(CMAKE_MATCH_1 MATCHES "/(.*)$")
      list(APPEND _parameters "${CMAKE_MATCH_1}")
    endif()
  elseif(_line MATCHES "^(.*)\\.$")
    set(_next "${CMAKE_MATCH_1}")
    finish_suite()
    set(_suite "${_next}")
    set(_tests "")
    set(_parameters "")
  endif()
endforeach()
file(WRITE ${OUT} "# ${_count} tests\n${_script}")
