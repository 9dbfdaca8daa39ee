# ctxc_add_dialect_plugin(NAME DIALECT dialect TABLEGEN File.td SOURCES a.cpp…)
#
# The plugin NAME.so with the ops of one dialect, for --load-dialect-plugin of ctxc, ctxc-opt and
# ctxc-lsp-server. TableGen makes from File.td, for the sources to include,
#
#   FileDialect.h.inc, FileDialect.cpp.inc    the dialect
#   FileOps.h.inc, FileOps.cpp.inc            its ops
#
# The plugin links libMLIR.so and none of ctxc's libraries: it takes ctxc's symbols from the tool
# that loads it, so that both mean the same types and interfaces. Tools that were built from other
# headers refuse to load it.
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(CTXC_NEED_PLUGIN_ABI ${CMAKE_CURRENT_LIST_DIR}/NeedPluginAbi.cpp)

function(ctxc_add_dialect_plugin name)
  cmake_parse_arguments(ARG "" "DIALECT;TABLEGEN" "SOURCES" ${ARGN})
  if(NOT ARG_DIALECT OR NOT ARG_TABLEGEN OR NOT ARG_SOURCES)
    message(FATAL_ERROR "ctxc_add_dialect_plugin(${name}) needs DIALECT, TABLEGEN and SOURCES")
  endif()
  # TableGen reads the folder's include path.
  include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${CTXC_INCLUDE_DIR})
  get_filename_component(_stem ${ARG_TABLEGEN} NAME_WE)
  set(LLVM_TARGET_DEFINITIONS ${ARG_TABLEGEN})
  mlir_tablegen(${_stem}Dialect.h.inc -gen-dialect-decls -dialect=${ARG_DIALECT})
  mlir_tablegen(${_stem}Dialect.cpp.inc -gen-dialect-defs -dialect=${ARG_DIALECT})
  mlir_tablegen(${_stem}Ops.h.inc -gen-op-decls -dialect=${ARG_DIALECT})
  mlir_tablegen(${_stem}Ops.cpp.inc -gen-op-defs -dialect=${ARG_DIALECT})
  add_public_tablegen_target(${name}IncGen)

  add_library(${name} MODULE ${ARG_SOURCES} ${CTXC_NEED_PLUGIN_ABI})
  add_dependencies(${name} ${name}IncGen)
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                                             ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ctxc::MLIR Eigen3::Eigen)
  # A symbol that the tool lacks is an error when the plugin is loaded, not when it is called.
  target_link_options(${name} PRIVATE -Wl,-z,now)
  set_target_properties(${name} PROPERTIES PREFIX "")
endfunction()
