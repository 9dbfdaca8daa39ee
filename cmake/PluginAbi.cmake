# cmake -DROOT=… -DOUTPUT=… -P PluginAbi.cmake: writes a header whose symbol is named by the contents of
# all public headers and TableGen files. Tools define the symbol and plugins need it, so that a plugin
# that was built against other headers is not loaded.
file(GLOB_RECURSE _files RELATIVE ${ROOT} ${ROOT}/include/*.h ${ROOT}/include/*.td
     ${ROOT}/dialects/*.h ${ROOT}/dialects/*.td)
list(SORT _files)
set(_hashes "")
foreach(_file ${_files})
  file(SHA256 ${ROOT}/${_file} _hash)
  string(APPEND _hashes "${_file} ${_hash}\n")
endforeach()
string(SHA256 _abi "${_hashes}")
string(SUBSTRING ${_abi} 0 16 _abi)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[// Written by cmake/PluginAbi.cmake.
#define CTXC_PLUGIN_ABI ctxc_plugin_abi_@_abi@
]])
