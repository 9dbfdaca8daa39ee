// The functions of NCCL, and of RCCL, that are used here, declared here and looked up in their
// library.
#ifndef CTXC_LIB_RUNTIME_GPU_GRAPHS_NCCLAPI_H
#define CTXC_LIB_RUNTIME_GPU_GRAPHS_NCCLAPI_H

#include "lib/Runtime/GPU/Graphs/GraphApi.h"
#include "lib/Runtime/GPU/LookUp.h"

namespace ctxc::graphs::nccl {

using Group = struct GroupObject *;
struct Id {
  char bytes[128];
};
constexpr int kFloat32 = 7, kSum = 0;

struct Api {
  int (*GetUniqueId)(Id *) = nullptr;
  int (*CommInitRank)(Group *, int ranks, Id, int rank) = nullptr;
  int (*CommDestroy)(Group) = nullptr;
  int (*CommAbort)(Group) = nullptr;
  int (*CommGetAsyncError)(Group, int *result) = nullptr;
  int (*AllReduce)(const void *from, void *to, size_t count, int type, int operation, Group,
                   Stream) = nullptr;
  int (*Send)(const void *from, size_t count, int type, int peer, Group, Stream) = nullptr;
  int (*Recv)(void *to, size_t count, int type, int peer, Group, Stream) = nullptr;
  int (*GroupStart)() = nullptr;
  int (*GroupEnd)() = nullptr;
  const char *(*GetErrorString)(int result) = nullptr;

  /// The name of a function that the library lacks; null where all are there. `find` is dlsym.
  template <typename Find> const char *lookUp(Find find) {
    LookUp<Find> get{find};
    get(GetUniqueId, "ncclGetUniqueId");
    get(CommInitRank, "ncclCommInitRank");
    get(CommDestroy, "ncclCommDestroy");
    get(CommAbort, "ncclCommAbort");
    get(CommGetAsyncError, "ncclCommGetAsyncError");
    get(AllReduce, "ncclAllReduce");
    get(Send, "ncclSend");
    get(Recv, "ncclRecv");
    get(GroupStart, "ncclGroupStart");
    get(GroupEnd, "ncclGroupEnd");
    get(GetErrorString, "ncclGetErrorString");
    return get.lacking;
  }
};

} // namespace ctxc::graphs::nccl

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_NCCLAPI_H
