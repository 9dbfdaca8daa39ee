# What ctxc is built from, as targets: read by the build, and by find_package(ctxc), so that an
# installed library finds on its machine what it found here.
#
#   ctxc::LLVM  ctxc::MLIR  Eigen3::Eigen    what public headers include
#   Boost::headers                           what sources include
#   ctxc::lld  ctxc::OpenMP  PkgConfig::SENTENCEPIECE, ONIGURUMA, UTF8PROC, LIBZIP    what libraries link
#
# CTXC_MLIR_VERSION says which MLIR; CTXC_OPENMP_NAME the run-time library of the compiler that built
# ctxc, whatever compiles what uses it. What of the first two lines is missing is recorded (CtxcNeeds.cmake); of the last
# only the build records it, since plugins link none of it.
#
# libMLIR.so and libLLVM.so hold everything; naming a component library beside them would link a
# second, static copy of the same code.
string(REGEX MATCH "^[0-9]+" _ctxc_llvm ${CTXC_MLIR_VERSION})
# Debian has a folder for each version of LLVM.
find_package(MLIR ${CTXC_MLIR_VERSION} QUIET CONFIG PATHS /usr/lib/llvm-${_ctxc_llvm})
ctxc_need(MLIR_FOUND "MLIR ${CTXC_MLIR_VERSION}" "libmlir-${_ctxc_llvm}-dev mlir-${_ctxc_llvm}-tools")
find_package(Eigen3 3.4 QUIET NO_MODULE)
ctxc_need(Eigen3_FOUND "Eigen 3.4" libeigen3-dev)
find_package(Boost QUIET)
ctxc_need(Boost_FOUND Boost "libboost-dev libboost-graph-dev")

if(NOT TARGET ctxc::MLIR)
  separate_arguments(_ctxc_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  add_library(ctxc::LLVM INTERFACE IMPORTED)
  target_compile_options(ctxc::LLVM INTERFACE ${_ctxc_definitions})
  target_include_directories(ctxc::LLVM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(ctxc::LLVM INTERFACE LLVM)
  add_library(ctxc::MLIR INTERFACE IMPORTED)
  target_include_directories(ctxc::MLIR INTERFACE ${MLIR_INCLUDE_DIRS})
  target_link_libraries(ctxc::MLIR INTERFACE MLIR ctxc::LLVM)
endif()

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(SENTENCEPIECE QUIET IMPORTED_TARGET sentencepiece)
  pkg_check_modules(ONIGURUMA QUIET IMPORTED_TARGET oniguruma)
  pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
  pkg_check_modules(LIBZIP QUIET IMPORTED_TARGET libzip)
endif()

# lld links code objects for AMD in this process. Debian packages its libraries static, and its CMake
# files name formats that this needs not.
find_library(CTXC_LLD_ELF lldELF HINTS ${LLVM_LIBRARY_DIRS})
find_library(CTXC_LLD_COMMON lldCommon HINTS ${LLVM_LIBRARY_DIRS})
find_library(CTXC_OPENMP_LIBRARY ${CTXC_OPENMP_NAME} HINTS ${LLVM_LIBRARY_DIRS})
mark_as_advanced(CTXC_LLD_ELF CTXC_LLD_COMMON CTXC_OPENMP_LIBRARY)
if(CTXC_LLD_ELF AND CTXC_LLD_COMMON AND NOT TARGET ctxc::lld)
  add_library(ctxc::lld INTERFACE IMPORTED)
  target_link_libraries(ctxc::lld INTERFACE ${CTXC_LLD_ELF} ${CTXC_LLD_COMMON} z zstd ctxc::LLVM)
endif()
if(CTXC_OPENMP_LIBRARY AND NOT TARGET ctxc::OpenMP)
  add_library(ctxc::OpenMP INTERFACE IMPORTED)
  target_link_libraries(ctxc::OpenMP INTERFACE ${CTXC_OPENMP_LIBRARY})
endif()
