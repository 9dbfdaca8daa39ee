# Compares docs/keys.md with what judge-key-tables writes.
execute_process(COMMAND ${PROGRAM} --page OUTPUT_VARIABLE _found COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} _page)
if(NOT _found STREQUAL _page)
  message(FATAL_ERROR "${PAGE} is out of date; run `build/bin/judge-key-tables --page > docs/keys.md`")
endif()
