find_package(GTest REQUIRED)

# A folder's GoogleTest program, whose tests are divided into groups for CTest (Groups.cmake). Tests
# spend their time in the libraries, so that -O1 suffices for their own code. Most of what is
# compiled are headers and templates; those of MLIR and GoogleTest are therefore precompiled, with
# the options of programs, and files are joined.
set(CTXC_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
ctxc_precompile(ctxc_test_pch HEADERS <ctxc/Support/UpstreamHeaders.h> <gtest/gtest.h>
                OPTIONS ${CTXC_TEST_OPTIONS} LIBRARIES GTest::gtest CtxcSupport ctxc::MLIR)
set_target_properties(ctxc_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(ctxc_test_pch PRIVATE -fPIE)

add_library(unit-main OBJECT Main.cpp)
target_compile_definitions(unit-main PRIVATE CTXC_SOURCE_ROOT="${CMAKE_SOURCE_DIR}")
# All programs are linked to MLIR, since its headers are in the precompiled one.
target_link_libraries(unit-main PUBLIC GTest::gtest ctxc::MLIR)

add_custom_target(unit-tests)

# ctxc_compile_tests(TARGET LIBRARY…): how tests are compiled.
function(ctxc_compile_tests target)
  target_link_libraries(${target} PRIVATE ${ARGN} unit-main)
  ctxc_see(${target} test/unit)
  target_precompile_headers(${target} REUSE_FROM ctxc_test_pch)
  ctxc_join_files(${target} 8)
  target_compile_options(${target} PRIVATE ${CTXC_TEST_OPTIONS})
  # The folder in which tests start: see Main.cpp. An absolute path would give each clone other code.
  target_compile_definitions(${target} PRIVATE CTXC_SOURCE_DIR=".")
endfunction()

# ctxc_add_unit_test(FOLDER LIBRARY…)
#
# The tests get the labels of the folder and of the rooms CTXC_<FOLDER>_ROOMS, which they test too.
# A suite with more than CTXC_<FOLDER>_GROUP tests (60) becomes several groups. Groups whose name
# matches CTXC_<FOLDER>_SLOW run only in the whole suite. CTXC_<FOLDER>_TESTS holds patterns of
# tests to leave out.
function(ctxc_add_unit_test folder)
  file(GLOB _sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  add_executable(unit-${folder} ${_sources})
  ctxc_compile_tests(unit-${folder} ${ARGN})
  set(_size 60)
  if(CTXC_${folder}_GROUP)
    set(_size ${CTXC_${folder}_GROUP})
  endif()
  add_dependencies(unit-tests unit-${folder})
  set(_labels ${folder} ${CTXC_${folder}_ROOMS})
  foreach(_room ${_labels})
    ctxc_tests_of(${_room} unit-${folder})
  endforeach()
  set(_groups ${CMAKE_CURRENT_BINARY_DIR}/${folder}.groups.cmake)
  add_custom_command(TARGET unit-${folder} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:unit-${folder}> -DPREFIX=${folder}
            -DSIZE=${_size} "-DWITHOUT=${CTXC_${folder}_TESTS}" "-DSLOW=${CTXC_${folder}_SLOW}"
            "-DLABELS=unit;${_labels}" "-DENVIRONMENT=${CTXC_TEST_ENVIRONMENT}" -DOUT=${_groups}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/Groups.cmake)
  set(_include ${CMAKE_CURRENT_BINARY_DIR}/${folder}.tests.cmake)
  file(CONFIGURE OUTPUT ${_include} @ONLY CONTENT [[
if(EXISTS "@_groups@")
  include("@_groups@")
else()
  add_test(@folder@.NOT_BUILT unit-@folder@)
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${_include})
endfunction()
