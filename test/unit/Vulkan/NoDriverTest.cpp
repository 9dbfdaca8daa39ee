// The messages where a driver is missing.
#include "ctxc/Runtime/GPU/Device.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

TEST(GpuDevice, SaysThatThereIsNoDriverOfNvidias) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
    GTEST_SKIP() << "there is a driver of NVIDIA's";
  EXPECT_EQ(llvm::toString(ctxc::Device::open("cuda:sm_90").takeError()),
            "cuda: there is no driver of NVIDIA's: libcuda.so.1 cannot be loaded: libcuda.so.1: "
            "cannot open shared object file: No such file or directory");
}

TEST(GpuDevice, SaysThatThereIsNoDriverOfAmds) {
  if (dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL))
    GTEST_SKIP() << "there is a driver of AMD's";
  EXPECT_EQ(llvm::toString(ctxc::Device::open("rocm").takeError()),
            "rocm: there is no HIP of AMD's: libamdhip64.so.7 cannot be loaded: libamdhip64.so.7: "
            "cannot open shared object file: No such file or directory");
}
