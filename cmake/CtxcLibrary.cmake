# Libraries, a room each, and what each of them sees.
#
# A folder of headers is seen through a folder that shows it alone, under the name by which it is
# included: build/rooms/ctxc/XF holds a link ctxc/XF and nothing else. So a file that includes what its
# library did not declare does not compile. What is generated is written where it is seen, since ninja
# knows files by their paths.
set(CTXC_ROOMS ${PROJECT_BINARY_DIR}/rooms)

# ctxc_see(TARGET FOLDER…): has TARGET include internals of libraries as "FOLDER/…", for what tests or
# measures them.
function(ctxc_see target)
  foreach(_folder ${ARGN})
    _ctxc_show(${target} PRIVATE ${_folder} ${PROJECT_SOURCE_DIR}/${_folder})
  endforeach()
endfunction()

# ctxc_join_files(TARGET COUNT [APART FILE…] [TOGETHER FILE…]): up to COUNT sources of TARGET are one translation unit,
# so that the headers that they have in common are read once; those of a folder of TARGET's are joined among themselves.
# Names in anonymous namespaces are then different in all of a folder, but for the files APART, which also are those with
# options of their own. Those TOGETHER are one unit, since they alone include what takes long. With CTXC_SINGLE_FILES each
# source is compiled by itself, which shows a missing include.
#
# A unit names its sources relative to itself, so that __FILE__ is the same in every clone and ccache finds it there;
# CMake's own units have absolute paths.
function(ctxc_join_files target count)
  cmake_parse_arguments(ARG "" "" "APART;TOGETHER" ${ARGN})
  if(CTXC_SINGLE_FILES)
    return()
  endif()
  get_target_property(_all ${target} SOURCES)
  list(TRANSFORM _all REPLACE "^${CMAKE_CURRENT_SOURCE_DIR}/" "")
  set(_sources ${_all})
  list(FILTER _sources INCLUDE REGEX "\\.cpp$")
  list(REMOVE_ITEM _sources ${ARG_APART} ${ARG_TOGETHER})
  list(REMOVE_ITEM _all ${_sources} ${ARG_TOGETHER})
  set(unit_together ${ARG_TOGETHER})
  set(_units unit_together)
  foreach(_source ${_sources})
    string(REGEX MATCH "^[^/]+/" _folder ${_source})
    math(EXPR _joined_${_folder} "0${_joined_${_folder}} + 1")
    math(EXPR _unit "(${_joined_${_folder}} - 1) / ${count}")
    string(MAKE_C_IDENTIFIER "unit_${_folder}${_unit}" _unit)
    list(APPEND ${_unit} ${_source})
    list(APPEND _units ${_unit})
  endforeach()
  list(REMOVE_DUPLICATES _units)
  foreach(_unit ${_units})
    set(_text "")
    set(_file ${CMAKE_CURRENT_BINARY_DIR}/${target}/${_unit}.cpp)
    cmake_path(GET _file PARENT_PATH _folder)
    foreach(_source ${${_unit}})
      cmake_path(ABSOLUTE_PATH _source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE _path)
      file(RELATIVE_PATH _path ${_folder} ${_path})
      string(APPEND _text "#include \"${_path}\"\n")
    endforeach()
    if(_text)
      file(CONFIGURE OUTPUT ${_file} CONTENT "${_text}")
      list(APPEND _all ${_file})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${_all}")
endfunction()

function(_ctxc_show target kind name folder)
  get_filename_component(_parent ${CTXC_ROOMS}/${name}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${_parent})
  file(CREATE_LINK ${folder} ${CTXC_ROOMS}/${name}/${name} SYMBOLIC)
  target_include_directories(${target} ${kind} $<BUILD_INTERFACE:${CTXC_ROOMS}/${name}>)
endfunction()

# ctxc_generated_folder(VARIABLE NAME): where files are written that are included as "NAME/…".
function(ctxc_generated_folder variable name)
  set(_folder ${PROJECT_BINARY_DIR}/generated/${name}/${name})
  file(MAKE_DIRECTORY ${_folder})
  set(${variable} ${_folder} PARENT_SCOPE)
endfunction()

# ctxc_embed(OUTPUT FILE…): writes a list of {name, text} of files, which become a part of a library.
function(ctxc_embed output)
  set(_rows "")
  foreach(_file ${ARGN})
    get_filename_component(_name ${_file} NAME_WLE)
    file(READ ${_file} _text)
    string(APPEND _rows "{\"${_name}\", R\"ctxc(${_text})ctxc\"},\n")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  file(CONFIGURE OUTPUT ${output} CONTENT "@_rows@" @ONLY)
endfunction()

# ctxc_tablegen(NAME OUTPUT GENERATOR…): mlir_tablegen of a header that is included as "NAME/OUTPUT",
# from a .td file that includes upstream's and dialects'.
macro(ctxc_tablegen name output)
  ctxc_generated_folder(_ctxc_folder ${name})
  file(RELATIVE_PATH _ctxc_folder ${CMAKE_CURRENT_BINARY_DIR} ${_ctxc_folder})
  mlir_tablegen(${_ctxc_folder}/${output} ${ARGN}
                EXTRA_INCLUDES ${MLIR_INCLUDE_DIRS} ${CTXC_DIALECT_FOLDERS})
endmacro()

# ctxc_add_library(NAME [PLAIN] [DEPS LIBRARY…] [PRIVATE_DEPS LIBRARY…] [GENERATED TARGET…] [APART FILE…]): the static
# library of every .cpp in this folder and below. It sees the public headers of its own room and of
# DEPS, which its public headers may include, and of PRIVATE_DEPS, which its sources alone may.
# Libraries of this project stand below it in the order of docs/architecture.md. PLAIN leaves MLIR
# out, for code that needs LLVM's Support only. GENERATED writes headers of this room. Its files are joined as by
# ctxc_join_files. SINGLE joins none, for an archive of which others link what they use.
function(ctxc_add_library name)
  cmake_parse_arguments(ARG "PLAIN;SINGLE" "" "DEPS;PRIVATE_DEPS;GENERATED;APART;TOGETHER" ${ARGN})
  file(RELATIVE_PATH _folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  get_filename_component(_room ${_folder} NAME)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${_sources})
  target_compile_features(${name} PUBLIC cxx_std_17)

  # A dialect's public headers lie beside its sources.
  if(_folder MATCHES "^dialects/")
    set(_public ${_folder})
    set(_headers ${_folder})
  else()
    set(_public ctxc/${_room})
    set(_headers include/${_public})
    ctxc_see(${name} ${_folder})
  endif()
  _ctxc_show(${name} PUBLIC ${_public} ${PROJECT_SOURCE_DIR}/${_headers})
  if(ARG_GENERATED)
    add_dependencies(${name} ${ARG_GENERATED})
    target_include_directories(${name}
      PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/${_public}>
      PRIVATE ${PROJECT_BINARY_DIR}/generated/${_folder})
  endif()

  set(_upstream ctxc::MLIR)
  if(ARG_PLAIN)
    set(_upstream ctxc::LLVM)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} ${_upstream} PRIVATE ${ARG_PRIVATE_DEPS})
  if(NOT ARG_SINGLE)
    ctxc_join_files(${name} 8 APART ${ARG_APART} TOGETHER ${ARG_TOGETHER})
  endif()
  ctxc_install_library(${name} ${_headers} ${_public})

  set_property(GLOBAL APPEND PROPERTY CTXC_LIBRARIES ${name})
  set_target_properties(${name} PROPERTIES CTXC_ROOM ${_room} CTXC_HEADERS ${_headers}
                                           CTXC_PUBLIC ${_public} CTXC_PLAIN ${ARG_PLAIN})
endfunction()

# Gives every library with MLIR a precompiled header: with the xf dialect too, where it depends on it.
function(ctxc_precompile_libraries)
  get_property(_libraries GLOBAL PROPERTY CTXC_LIBRARIES)
  set(_above CtxcXF)
  set(_count 0)
  while(NOT _count EQUAL _length)
    list(LENGTH _above _count)
    foreach(_library ${_libraries})
      get_target_property(_deps ${_library} LINK_LIBRARIES)
      foreach(_dep ${_deps})
        if(_dep IN_LIST _above)
          list(APPEND _above ${_library})
        endif()
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES _above)
    list(LENGTH _above _length)
  endwhile()
  list(REMOVE_ITEM _above CtxcXF)
  foreach(_library ${_libraries})
    get_target_property(_plain ${_library} CTXC_PLAIN)
    if(_library IN_LIST _above)
      target_precompile_headers(${_library} REUSE_FROM ctxc_xf_pch)
    elseif(NOT _plain)
      target_precompile_headers(${_library} REUSE_FROM ctxc_pch)
    endif()
  endforeach()
endfunction()

# The order of the rooms is the first block of docs/architecture.md under "Layers": a line is a layer,
# the highest first. Refuses a library that depends on one beside or above it, so that there is no
# cycle either. Writes the arrows that there are, for test/package/rooms.py.
function(ctxc_check_layers)
  set(_page ${PROJECT_SOURCE_DIR}/docs/architecture.md)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_page})
  file(READ ${_page} _text)
  string(REPLACE ";" "," _text "${_text}")
  string(REGEX REPLACE ".*\n## Layers\n" "" _text "${_text}")
  if(NOT _text MATCHES "\n```\n([^`]*)```")
    message(FATAL_ERROR "${_page} has no block of layers")
  endif()
  string(REPLACE "\n" ";" _lines "${CMAKE_MATCH_1}")
  set(_height 0)
  foreach(_line ${_lines})
    math(EXPR _height "${_height} - 1")
    string(REGEX REPLACE "   .*" "" _rooms "${_line}")
    string(REPLACE " · " ";" _rooms "${_rooms}")
    foreach(_room ${_rooms})
      set(_height_${_room} ${_height})
      list(APPEND _named ${_room})
    endforeach()
  endforeach()

  get_property(_libraries GLOBAL PROPERTY CTXC_LIBRARIES)
  set(_table "")
  foreach(_library ${_libraries})
    get_target_property(_room ${_library} CTXC_ROOM)
    if(NOT DEFINED _height_${_room})
      message(FATAL_ERROR "${_library}: ${_page} names no layer for '${_room}'")
    endif()
    list(REMOVE_ITEM _named ${_room})
    string(APPEND _table "${_room} DEPS\n")
    get_target_property(_all ${_library} LINK_LIBRARIES)
    get_target_property(_public ${_library} INTERFACE_LINK_LIBRARIES)
    foreach(_dep ${_all})
      if(NOT _dep IN_LIST _libraries)
        continue()
      endif()
      get_target_property(_other ${_dep} CTXC_ROOM)
      if(NOT _height_${_other} LESS _height_${_room})
        message(FATAL_ERROR "${_library} must not depend on ${_dep}: docs/architecture.md does not "
                            "have ${_other} below ${_room}")
      endif()
      set(_kind PRIVATE_DEPS)
      if(_dep IN_LIST _public)
        set(_kind DEPS)
      endif()
      string(APPEND _table "${_room} ${_kind} ${_other}\n")
    endforeach()
  endforeach()
  if(_named)
    message(FATAL_ERROR "${_page} has layers of what is no library: ${_named}")
  endif()
  file(CONFIGURE OUTPUT ${CTXC_ROOMS}/arrows.txt CONTENT "${_table}" @ONLY)
endfunction()
