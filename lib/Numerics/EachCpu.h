// Inner loops are compiled for the processors that differ in their vectors, and the one that fits is
// taken when the program starts.
#ifndef CTXC_LIB_NUMERICS_EACHCPU_H
#define CTXC_LIB_NUMERICS_EACHCPU_H

#if defined(__x86_64__) && defined(__ELF__)
#define CTXC_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CTXC_EACH_CPU
#endif

#endif // CTXC_LIB_NUMERICS_EACHCPU_H
