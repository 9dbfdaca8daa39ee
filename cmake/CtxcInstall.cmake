# The installed package, in two components:
#
#   tools         ctxc, ctxc-opt and ctxc-lsp-server, those that were built, and what they read
#   development   headers, TableGen files, libraries, and what find_package(ctxc) reads
#
# Headers have a folder of their own, include/ctxc, which is what a compiler is given:
#   #include "ctxc/Reference/Evaluation.h"    include "dialects/XF/XFInterfaces.td"
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CTXC_INSTALL_HEADERS ${CMAKE_INSTALL_INCLUDEDIR}/ctxc)
set(CTXC_INSTALL_CMAKE ${CMAKE_INSTALL_LIBDIR}/cmake/ctxc)
# An installed tool finds libMLIR.so where the built one did.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

function(ctxc_install_library name headers public)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CTXC_INSTALL_HEADERS}>)
  install(TARGETS ${name} EXPORT ctxcTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  ctxc_generated_folder(_generated ${public})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${headers}/ ${_generated}/
          DESTINATION ${CTXC_INSTALL_HEADERS}/${public} COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.h.inc")
endfunction()

function(ctxc_install_tool name)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools OPTIONAL)
endfunction()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ctxcConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/cmake/ctxcConfig.cmake
                              INSTALL_DESTINATION ${CTXC_INSTALL_CMAKE}
                              PATH_VARS CTXC_INSTALL_HEADERS CMAKE_INSTALL_BINDIR)
# Before 1.0, any minor version may change what plugins see.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/ctxcConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/ctxcConfig.cmake
              ${PROJECT_BINARY_DIR}/cmake/ctxcConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/CtxcNeeds.cmake
              ${CMAKE_CURRENT_LIST_DIR}/CtxcUpstream.cmake
              ${CMAKE_CURRENT_LIST_DIR}/CtxcPlugin.cmake
              ${CMAKE_CURRENT_LIST_DIR}/NeedPluginAbi.cpp
        DESTINATION ${CTXC_INSTALL_CMAKE} COMPONENT development)
install(EXPORT ctxcTargets NAMESPACE ctxc:: DESTINATION ${CTXC_INSTALL_CMAKE}
        COMPONENT development)

# What may be done with it, where Debian looks.
set(CTXC_PACKAGE_tools ctxc)
set(CTXC_PACKAGE_development libctxc-dev)
foreach(_component tools development)
  set(_doc ${CMAKE_INSTALL_DATADIR}/doc/${CTXC_PACKAGE_${_component}})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
          DESTINATION ${_doc} COMPONENT ${_component})
  install(FILES ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${_doc} RENAME copyright
          COMPONENT ${_component})
  install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${_doc} RENAME changelog
          COMPONENT ${_component})
endforeach()

# `cpack` in the build folder makes a Debian package of each component: ctxc and libctxc-dev.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ctxc)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# A Debian package has a maintainer, who is whoever makes it: by CTXC_PACKAGE_CONTACT, or by the variables that
# Debian's own tools read. Without these the package says that nobody answers for it.
set(_contact "a build of ctxc without a maintainer <nobody@localhost>")
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(_contact "$ENV{DEBEMAIL}")
  if(NOT "$ENV{DEBFULLNAME}" STREQUAL "")
    set(_contact "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
  endif()
endif()
set(CTXC_PACKAGE_CONTACT "${_contact}" CACHE STRING "the maintainer of Debian packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${CTXC_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "context compiler for transformer language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "Replaces what a transformer read before a token by a change of its weights that gives the same
logits, proves for which blocks this is possible, and verifies that it did it.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers, static libraries and CMake files for programs that use ctxc, and for its plugins.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ctxc)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "graphviz, g++ | clang, python3")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libctxc-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(_llvm ${LLVM_VERSION_MAJOR})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libmlir-${_llvm}-dev, mlir-${_llvm}-tools, llvm-${_llvm}-dev, liblld-${_llvm}-dev"
    "libomp-${_llvm}-dev, zlib1g-dev, libzstd-dev, libeigen3-dev, libboost-dev, libboost-graph-dev"
    "libsentencepiece-dev, libonig-dev, libutf8proc-dev, libzip-dev, pkg-config")
list(JOIN CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
if(PROJECT_IS_TOP_LEVEL)
  include(CPack)
endif()
