# Writes OUT, a header with a digest of the files in LIST: what the machine code of a kernel depends
# on besides its IR.
file(STRINGS ${LIST} files)
set(all "")
foreach(file ${files})
  file(SHA256 ${file} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 digest "${all}")
file(WRITE ${OUT} "namespace ctxc {\nconstexpr const char *loweringDigest = \"${digest}\";\n}\n")
