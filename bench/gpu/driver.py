"""NVIDIA's driver and cuBLAS through ctypes: times of a copy and of a matrix-vector product."""

import contextlib
import ctypes
import glob
import statistics
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path


class Missing(Exception):
    """A measurement that is left out, because something that it needs is missing."""


class Driver:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Missing(f"no driver: {error}") from error
        self.call("cuInit", c_uint(0))
        self.context, self.stream = c_void_p(), c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), c_int(0))
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuStreamCreate", byref(self.stream), c_uint(1))
        self.events = [c_void_p(), c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", byref(event), c_uint(0))
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, c_int(128), c_int(0))
        self.name = name.value.decode()

    def call(self, name, *arguments):
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise Missing(f"the driver lacks {name}") from error
        if result := function(*arguments):
            raise Missing(f"{name} gave error {result}")

    @contextlib.contextmanager
    def memory(self, size):
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        try:
            self.call("cuMemsetD8Async", pointer, ctypes.c_ubyte(0), c_size_t(size), self.stream)
            yield pointer
        finally:
            self.call("cuStreamSynchronize", self.stream)
            self.call("cuMemFree_v2", pointer)

    def milliseconds(self, work):
        begin, end = self.events
        self.call("cuEventRecord", begin, self.stream)
        work()
        self.call("cuEventRecord", end, self.stream)
        self.call("cuStreamSynchronize", self.stream)
        taken = c_float()
        self.call("cuEventElapsedTime", byref(taken), begin, end)
        return taken.value

    def median(self, work, repeats=20):
        for _ in range(3):
            self.milliseconds(work)
        return statistics.median(self.milliseconds(work) for _ in range(repeats))

    def copy_gbps(self, size):
        """Bandwidth of a copy within the device: bytes read and written, in GB/s."""
        with self.memory(size) as source, self.memory(size) as target:
            milliseconds = self.median(lambda: self.call(
                "cuMemcpyDtoDAsync_v2", target, source, c_size_t(size), self.stream))
        if milliseconds <= 0:
            raise Missing("a copy took no time")
        return 2 * size / milliseconds / 1e6

    def close(self):
        for event in self.events:
            self.call("cuEventDestroy_v2", event)
        self.call("cuStreamDestroy_v2", self.stream)
        self.call("cuCtxSetCurrent", c_void_p())
        self.call("cuDevicePrimaryCtxRelease_v2", c_int(0))


def cublas_library():
    places = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"]
    for folder in sys.path:
        places += sorted(glob.glob(str(Path(folder) / "nvidia" / "*" / "lib" / "libcublas.so.*")))
    for place in places:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(place)
    raise Missing("cuBLAS is not there")


class Cublas:
    BF16, F32, COMPUTE_F32, TRANSPOSED, PLAIN = 14, 0, 68, 1, 0

    def __init__(self, driver):
        self.driver, self.library = driver, cublas_library()
        self.handle = c_void_p()
        self.call("cublasCreate_v2", byref(self.handle))
        self.call("cublasSetStream_v2", self.handle, driver.stream)

    def call(self, name, *arguments):
        if result := getattr(self.library, name)(*arguments):
            raise Missing(f"{name} gave error {result}")

    def gemm_ms(self, rows, columns, vectors):
        """A bfloat16 matrix (rows × columns) times a matrix of the given number of vectors, with bfloat16 results."""
        one, zero = c_float(1), c_float(0)
        with self.driver.memory(2 * rows * columns) as weights, \
                self.driver.memory(2 * columns * vectors) as x, \
                self.driver.memory(2 * rows * vectors) as y:
            return self.driver.median(lambda: self.call(
                "cublasGemmEx", self.handle, c_int(self.TRANSPOSED), c_int(self.PLAIN),
                c_int(rows), c_int(vectors), c_int(columns), byref(one),
                c_void_p(weights.value), c_int(self.BF16), c_int(columns), c_void_p(x.value),
                c_int(self.BF16), c_int(columns), byref(zero), c_void_p(y.value),
                c_int(self.BF16), c_int(rows), c_int(self.COMPUTE_F32), c_int(-1)))

    def gemv_ms(self, rows, columns, matrices):
        """A bfloat16 matrix (rows × columns) times a vector, with float32 results. Several matrices take
        turns, so that none is in the cache."""
        one, zero = c_float(1), c_float(0)
        size = 2 * rows * columns
        with self.driver.memory(size * matrices) as weights, self.driver.memory(2 * columns) as x, \
                self.driver.memory(4 * rows) as y:
            def each():
                for i in range(matrices):
                    self.call("cublasGemmEx", self.handle, c_int(self.TRANSPOSED), c_int(self.PLAIN),
                              c_int(rows), c_int(1), c_int(columns), byref(one),
                              c_void_p(weights.value + i * size), c_int(self.BF16), c_int(columns),
                              c_void_p(x.value), c_int(self.BF16), c_int(columns), byref(zero),
                              c_void_p(y.value), c_int(self.F32), c_int(rows),
                              c_int(self.COMPUTE_F32), c_int(-1))
            return self.driver.median(each) / matrices
