# The installed package: headers and TableGen files, libraries, tools, and what find_package(ctxc)
# reads. Headers have a folder of their own, include/ctxc, which is what a compiler is given:
#   #include "ctxc/Reference/Evaluation.h"    include "dialects/XF/XFInterfaces.td"
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CTXC_INSTALL_HEADERS ${CMAKE_INSTALL_INCLUDEDIR}/ctxc)
set(CTXC_INSTALL_CMAKE ${CMAKE_INSTALL_LIBDIR}/cmake/ctxc)
# An installed tool finds libMLIR.so where the built one did.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

function(ctxc_install_library name)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CTXC_INSTALL_HEADERS}>)
  install(TARGETS ${name} EXPORT ctxcTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

function(ctxc_install_tool name)
  install(TARGETS ${name} EXPORT ctxcTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

foreach(_root ${CMAKE_SOURCE_DIR}/include/ctxc ${CMAKE_BINARY_DIR}/include/ctxc)
  install(DIRECTORY ${_root} DESTINATION ${CTXC_INSTALL_HEADERS}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.h.inc"
          PATTERN CMakeFiles EXCLUDE)
endforeach()
foreach(_root ${CMAKE_SOURCE_DIR}/dialects ${CMAKE_BINARY_DIR}/dialects)
  install(DIRECTORY ${_root} DESTINATION ${CTXC_INSTALL_HEADERS}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.h.inc"
          PATTERN CMakeFiles EXCLUDE)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ctxcConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/cmake/ctxcConfig.cmake
                              INSTALL_DESTINATION ${CTXC_INSTALL_CMAKE}
                              PATH_VARS CTXC_INSTALL_HEADERS)
# Before 1.0, any minor version may change what plugins see.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/ctxcConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/ctxcConfig.cmake
              ${CMAKE_BINARY_DIR}/cmake/ctxcConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/CtxcPlugin.cmake
              ${CMAKE_CURRENT_LIST_DIR}/NeedPluginAbi.cpp
        DESTINATION ${CTXC_INSTALL_CMAKE})
install(EXPORT ctxcTargets NAMESPACE ctxc:: DESTINATION ${CTXC_INSTALL_CMAKE})
