# ctxc_precompile(NAME HEADERS… [OPTIONS…]): the object library NAME, whose one purpose is a header of
# HEADERS precompiled with OPTIONS; targets take it by target_precompile_headers(… REUSE_FROM NAME).
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
  cmake_parse_arguments(ARG "" "" "HEADERS;OPTIONS" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})

  list(TRANSFORM ARG_HEADERS REPLACE "^<(.+)>$" "#include <\\1>\n" OUTPUT_VARIABLE _includes)
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir)
  file(CONFIGURE OUTPUT ${_folder}/text.h CONTENT "${_includes}")
  set(_roots ${PROJECT_SOURCE_DIR}/include ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  separate_arguments(_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  list(TRANSFORM _roots PREPEND -I)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++${CMAKE_CXX_STANDARD} ${_roots}
                          ${_definitions} -E -P -x c++ ${_folder}/text.h
                  OUTPUT_VARIABLE _text COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 _digest "${_text}")
  file(CONFIGURE OUTPUT ${_folder}/cmake_pch.hxx.pch.sum CONTENT "${_digest}\n")
endfunction()
