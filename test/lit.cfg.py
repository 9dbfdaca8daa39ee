# How lit runs the .mlir tests: ctxc-opt and LLVM's FileCheck, not and split-file are in PATH.
import os
import sys

import lit.formats

config.name = "ctxc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "goldens", "judge", "Examples", "unit", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ctxc_build_dir, "test")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.ctxc_build_dir, "bin"), config.llvm_tools_dir, config.environment["PATH"]]
)
config.environment["XDG_CACHE_HOME"] = config.ctxc_test_cache
# Kernels that tools compile to run them run only a few times; `ctxc compile` always optimises
# fully.
config.environment["CTXC_KERNEL_OPT"] = config.ctxc_kernel_opt
# A thread that waits for the others of its process must not keep those of other tests from a core.
config.environment["OMP_WAIT_POLICY"] = "passive"
# REQUIRES: nightly is for what minutes have no room for.
if config.ctxc_nightly:
    config.available_features.add("nightly")
config.substitutions.append(("%source", config.ctxc_source_dir))
config.substitutions.append(("%build", config.ctxc_build_dir))
config.substitutions.append(("%python", sys.executable))
