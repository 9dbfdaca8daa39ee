// A few kernels in PTX, to test a device with.
#ifndef CTXC_TEST_UNIT_CUDA_SMALLKERNELS_H
#define CTXC_TEST_UNIT_CUDA_SMALLKERNELS_H

#include <string>

namespace ctxc::test {

/// A kernel with one buffer: in `body`, %rd1 is the buffer's address, and %r1 the thread's number.
inline std::string smallKernel(const std::string &name, const std::string &body) {
  return ".visible .entry " + name + "(\n\t.param .u64 .ptr .align 1 " + name +
         "_param_0\n)\n.maxntid 64, 1, 1\n.minnctapersm 1\n{\n\t.shared .align 16 .b8 words[256];\n"
         "\tld.param.b64 \t%rd1, [" +
         name + "_param_0];\n\tcvta.to.global.u64 \t%rd1, %rd1;\n\tmov.u32 \t%r1, %tid.x;\n" +
         "\tmul.wide.u32 \t%rd2, %r1, 4;\n\tadd.s64 \t%rd3, %rd1, %rd2;\n" + body + "\tret;\n\n}\n";
}

inline std::string smallModule(const std::string &kernels, const std::string &target = "sm_80") {
  return "//\n.version 7.0\n.target " + target + "\n.address_size 64\n\n" + kernels;
}

/// Adds 1 to each float.
inline std::string increment(const std::string &name = "increment") {
  return smallKernel(name, "\tld.global.b32 \t%r2, [%rd3];\n"
                           "\tadd.rn.f32 \t%r2, %r2, 0f3F800000;\n"
                           "\tst.global.b32 \t[%rd3], %r2;\n");
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_CUDA_SMALLKERNELS_H
