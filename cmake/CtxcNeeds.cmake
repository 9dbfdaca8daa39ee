# What a machine lacks, said in one line for each part: parts without which nothing is built end the configuration, all
# of them in one message; the others are listed at its end.

# ctxc_need(FOUND NAME PACKAGE): nothing is built where the variable FOUND is false. NAME is what is missing then, PACKAGE
# Debian's package with it.
function(ctxc_need found name package)
  if(NOT ${found})
    set_property(GLOBAL APPEND PROPERTY CTXC_LACKS "${name} (${package})")
  endif()
endfunction()

# ctxc_stop_if_lacking(HOW): ends the configuration if something that ctxc_need named is missing; HOW says how to get it.
function(ctxc_stop_if_lacking how)
  get_property(_lacks GLOBAL PROPERTY CTXC_LACKS)
  if(_lacks)
    list(JOIN _lacks ", " _lacks)
    message(FATAL_ERROR "this machine lacks ${_lacks}; in brackets are Debian's packages: ${how}")
  endif()
endfunction()

# ctxc_optional(FOUND PART CANNOT INSTALL): a build without PART cannot do what CANNOT says; INSTALL is a command.
function(ctxc_optional found part cannot install)
  if(NOT ${found})
    set_property(GLOBAL APPEND PROPERTY CTXC_DOES_WITHOUT "without ${part}: ${cannot} (${install})")
  endif()
endfunction()

# Lists what ctxc_optional named.
function(ctxc_list_optional)
  get_property(_lines GLOBAL PROPERTY CTXC_DOES_WITHOUT)
  foreach(_line ${_lines})
    message(STATUS "${_line}")
  endforeach()
endfunction()
