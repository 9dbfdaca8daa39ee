# What a plugin may use: headers, and these libraries inside the tool that loads it.
set(CTXC_OPEN_LIBRARIES CtxcXF CtxcPatch CtxcKernel CtxcSupport CtxcNumerics CtxcCheckpoint CtxcReference CtxcGradient
                        CtxcProgram CtxcLowering CtxcRuntime CtxcPlugins)

# ctxc_open_to_plugins(TOOL): has TOOL load dialect plugins. A plugin takes our symbols, the ids of
# types and interfaces among them, from the tool; a copy of its own would be another dialect. So
# the tool has all of the open libraries, also what it does not use itself, and exports them.
function(ctxc_open_to_plugins tool)
  target_link_libraries(${tool} PRIVATE ${CTXC_OPEN_LIBRARIES})
  # By path and first: where the same archive comes again among the libraries, nothing is missing.
  list(TRANSFORM CTXC_OPEN_LIBRARIES REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE _archives)
  target_link_options(${tool} PRIVATE LINKER:--whole-archive ${_archives}
                                      LINKER:--no-whole-archive)
  set_target_properties(${tool} PROPERTIES ENABLE_EXPORTS ON)
endfunction()
