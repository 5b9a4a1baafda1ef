# SPDX-License-Identifier: GPL-2.0-or-later
"""NPP and nvJPEG: NVIDIA's own libraries, which run in the guest with qCUDA's functions in place of the runtime that is
linked into them. Each step compares with NumPy where that is simple, and returns all bits of its result."""
import ctypes
import hashlib
import os

import numpy as np

from steps import log, run, step

cuda = ctypes.CDLL("libcudart.so.13")
numbers = np.random.default_rng(5)
HEIGHT, WIDTH = 270, 480
# Smooth, so that a picture survives compression.
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
picture = np.stack([x % 256, y % 256, (x + y) // 3 % 256], axis=2).astype(np.uint8)


class Stream(ctypes.Structure):
    """NppStreamContext"""
    _fields_ = [("stream", ctypes.c_void_p), ("device", ctypes.c_int), ("multiprocessors", ctypes.c_int),
                ("threads", ctypes.c_int), ("block", ctypes.c_int), ("shared", ctypes.c_size_t), ("major", ctypes.c_int),
                ("minor", ctypes.c_int), ("flags", ctypes.c_uint), ("reserved", ctypes.c_int)]


class Size(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int)]


class Rectangle(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int), ("width", ctypes.c_int), ("height", ctypes.c_int)]


class Image(ctypes.Structure):
    """nvjpegImage_t"""
    _fields_ = [("channel", ctypes.c_void_p * 4), ("pitch", ctypes.c_size_t * 4)]


def good(status):
    assert status == 0, status


class Memory:
    """Memory of the GPU, with an array's bytes in it."""

    def __init__(self, array):
        self.at = ctypes.c_void_p()
        self.bytes = array.nbytes
        good(cuda.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(self.bytes)))
        good(cuda.cudaMemcpy(self.at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.bytes), 1))

    def read(self, *shape, kind=np.uint8):
        array = np.empty(shape, kind)
        good(cuda.cudaMemcpy(array.ctypes.data_as(ctypes.c_void_p), self.at, ctypes.c_size_t(array.nbytes), 2))
        return array


def library(name):
    """One of NVIDIA's libraries, from the toolkit."""
    folder = os.environ.get("CUDA_LIBRARIES", "/usr/local/cuda/lib64")
    ctypes.CDLL(f"{folder}/libnppc.so.13")
    return ctypes.CDLL(f"{folder}/lib{name}.so.13")


def bits(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def attribute(number):
    value = ctypes.c_int()
    good(cuda.cudaDeviceGetAttribute(ctypes.byref(value), number, 0))
    return value.value


def stream():
    return Stream(None, 0, attribute(16), attribute(39), attribute(1), attribute(8), attribute(75), attribute(76), 0, 0)


def filtered(name, function, source, result, *arguments):
    """One of NPP's functions from a picture to one of the same size."""
    there, back = Memory(source), Memory(np.zeros(result, np.uint8))
    good(getattr(library(name), function)(there.at, source.strides[0], back.at, int(np.prod(result[1:])),
                                           Size(WIDTH, HEIGHT), *arguments, stream()))
    return back.read(*result)


@step
def mirrored():
    got = filtered("nppig", "nppiMirror_8u_C3R_Ctx", picture, picture.shape, 2)
    assert np.array_equal(got, picture[::-1, ::-1])
    return bits(got)


@step
def gray():
    got = filtered("nppicc", "nppiRGBToGray_8u_C3C1R_Ctx", picture, (HEIGHT, WIDTH))
    want = picture @ np.array([0.299, 0.587, 0.114])
    assert np.abs(got - want).max() <= 1
    return bits(got)


@step
def smoothed():
    """Without the border, because the filter reads two elements around each."""
    there, back = Memory(picture), Memory(np.zeros(picture.shape, np.uint8))
    good(library("nppif").nppiFilterGauss_8u_C3R_Ctx(
        ctypes.c_void_p(there.at.value + 2 * WIDTH * 3 + 6), WIDTH * 3, back.at, WIDTH * 3, Size(WIDTH - 4, HEIGHT - 4), 201, stream()))
    got = back.read(*picture.shape)
    off = np.abs(got[:200, :200].astype(int) - picture[2:202, 2:202]).max()
    assert off <= 2, off
    return bits(got)


@step
def resized():
    there, back = Memory(picture), Memory(np.zeros((HEIGHT // 2, WIDTH // 2, 3), np.uint8))
    good(library("nppig").nppiResize_8u_C3R_Ctx(
        there.at, WIDTH * 3, Size(WIDTH, HEIGHT), Rectangle(0, 0, WIDTH, HEIGHT), back.at, WIDTH // 2 * 3,
        Size(WIDTH // 2, HEIGHT // 2), Rectangle(0, 0, WIDTH // 2, HEIGHT // 2), 2, stream()))
    got = back.read(HEIGHT // 2, WIDTH // 2, 3)
    # Where the picture is smooth.
    off = np.abs(got[:100, :120].astype(int) - picture[:200:2, :240:2]).max()
    assert off <= 2, off
    return bits(got)


@step
def wrong():
    """A picture of no size is refused."""
    there = Memory(picture)
    status = library("nppig").nppiMirror_8u_C3R_Ctx(there.at, WIDTH * 3, there.at, WIDTH * 3, Size(-1, 5), 2, stream())
    assert status < 0
    return status


@step
def summed():
    signal = numbers.integers(-100, 100, 1_000_000).astype(np.float32)
    npps = library("npps")
    need = ctypes.c_size_t()
    good(npps.nppsSumGetBufferSize_32f_Ctx(ctypes.c_size_t(signal.size), ctypes.byref(need), stream()))
    there, room, result = Memory(signal), Memory(np.zeros(need.value, np.uint8)), Memory(np.zeros(1, np.float32))
    good(npps.nppsSum_32f_Ctx(there.at, ctypes.c_size_t(signal.size), result.at, room.at, stream()))
    got = result.read(1, kind=np.float32)[0]
    assert got == signal.sum(dtype=np.float64), got
    return float(got)


def compressed(codec, handle):
    """The picture as a file."""
    there = Memory(picture)
    state, params, length = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    image = Image()
    image.channel[0], image.pitch[0] = there.at, WIDTH * 3
    good(codec.nvjpegEncoderStateCreate(handle, ctypes.byref(state), None))
    good(codec.nvjpegEncoderParamsCreate(handle, ctypes.byref(params), None))
    good(codec.nvjpegEncoderParamsSetQuality(params, 90, None))
    good(codec.nvjpegEncoderParamsSetSamplingFactors(params, 2, None))
    good(codec.nvjpegEncodeImage(handle, state, params, ctypes.byref(image), 5, WIDTH, HEIGHT, None))
    good(codec.nvjpegEncodeRetrieveBitstream(handle, state, None, ctypes.byref(length), None))
    good(cuda.cudaStreamSynchronize(None))
    file = (ctypes.c_ubyte * length.value)()
    good(codec.nvjpegEncodeRetrieveBitstream(handle, state, file, ctypes.byref(length), None))
    good(cuda.cudaStreamSynchronize(None))
    return file


def decoded(backend):
    """The picture as a file, and read again. Backend 1 decodes on processor and GPU. By default (0) GPUs that have one use
    an engine for JPEG, which only NVIDIA's driver reaches and whose last bits are its own."""
    codec = library("nvjpeg")
    handle, state = ctypes.c_void_p(), ctypes.c_void_p()
    good(codec.nvjpegCreateEx(backend, None, None, 0, ctypes.byref(handle)))
    file = compressed(codec, handle)
    assert bytes(file[:2]) == b"\xff\xd8"
    good(codec.nvjpegJpegStateCreate(handle, ctypes.byref(state)))
    back = Memory(np.zeros(picture.shape, np.uint8))
    image = Image()
    image.channel[0], image.pitch[0] = back.at, WIDTH * 3
    assert codec.nvjpegDecode(handle, state, file, ctypes.c_size_t(20), 5, ctypes.byref(image), None) != 0
    good(codec.nvjpegDecode(handle, state, file, ctypes.c_size_t(len(file)), 5, ctypes.byref(image), None))
    good(cuda.cudaDeviceSynchronize())
    got = back.read(*picture.shape)
    off = np.abs(got.astype(int) - picture)
    log(f"{len(file)} bytes, off by {off.mean():.2f} on average, {off.max()} at most")
    assert off.mean() < 4
    return bits(np.frombuffer(bytes(file), np.uint8)), bits(got)


@step
def jpeg():
    return decoded(1)


@step
def jpeg_by_default():
    return decoded(0)[0]


@step
def roads():
    """The libraries are NVIDIA's own, and what they work with is the runtime that this process has."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        loaded = {os.path.basename(line.split()[-1]) for line in maps if "/" in line}
    return sorted({name.split(".so")[0] for name in loaded if name.startswith(("libnpp", "libnvjpeg"))})


run()
