# ctxc_precompile(NAME HEADERS… [OPTIONS…] LIBRARIES… [GENERATED TARGET]): the object library NAME, whose one purpose is a
# header of HEADERS, which are LIBRARIES', precompiled with OPTIONS; targets take it by
# target_precompile_headers(… REUSE_FROM NAME). GENERATED writes some of them.
#
# A precompiled header has the paths of its build folder inside, so ccache would find nothing that
# another clone compiled, and would read its 160 MB for every source. It is told to look at a digest of
# the header's text instead, which tools/build.sh has it do.

# Sources get the header alone, not its text's path too, which is another in every clone.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  # Times of headers are other in every clone too.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pch.cpp CONTENT "")

function(ctxc_precompile name)
  cmake_parse_arguments(ARG "" "GENERATED" "HEADERS;OPTIONS;LIBRARIES" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})

  list(TRANSFORM ARG_HEADERS REPLACE "^<(.+)>$" "#include <\\1>\n" OUTPUT_VARIABLE _includes)
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir)
  file(CONFIGURE OUTPUT ${_folder}/text.h CONTENT "${_includes}")
  separate_arguments(_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  set(_digest ${_folder}/cmake_pch.hxx.pch.sum)
  add_custom_command(OUTPUT ${_digest} DEPFILE ${_folder}/text.d WORKING_DIRECTORY ${_folder}
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++${CMAKE_CXX_STANDARD} ${_definitions}
            "-I$<JOIN:$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>,;-I>"
            -ffile-prefix-map=${PROJECT_BINARY_DIR}=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
            -E -P -MD -MF text.d -MT ${_digest} -x c++ ${_folder}/text.h -o text.i
    COMMAND ${CMAKE_COMMAND} -E sha256sum text.i > ${_digest}
    DEPENDS ${_folder}/text.h ${ARG_GENERATED} COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name}_digest DEPENDS ${_digest})
  add_dependencies(${name} ${name}_digest)
endfunction()
