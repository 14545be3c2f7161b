# SPDX-License-Identifier: BSD-2-Clause
"""Regions of Python code, through libxputrace: with a context manager, as a decorator, or by start and stop.

    preprocess = Regions("libxputrace.so.0").region("preprocess")

    with preprocess:
        ...

    @preprocess
    def function(): ...
"""

import collections
import ctypes
import functools

Totals = collections.namedtuple("Totals", "entries total_time min_time max_time unmatched")


class _Region(ctypes.Structure):
    """struct xpt_region: 80 bytes, of which only the name is anybody's."""
    _fields_ = [("name", ctypes.c_char_p), ("private", ctypes.c_uint64 * 9)]


class Regions:
    """The library, loaded from a path or a name that the loader knows."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("start", "stop", "print", "clear", "destroy"):
            function = getattr(self.library, "xpt_region_" + name)
            function.argtypes, function.restype = [ctypes.POINTER(_Region)], None
        self.library.xpt_region_init.argtypes = [ctypes.POINTER(_Region), ctypes.c_char_p]
        self.library.xpt_region_get.argtypes = [ctypes.POINTER(_Region), ctypes.POINTER(ctypes.c_uint64)]
        self.library.xpt_region_init.restype = self.library.xpt_region_get.restype = None

    def enabled(self):
        return bool(self.library.xpt_region_enabled())

    def region(self, name):
        return Region(self.library, name)


class Region:
    """Lives as long as this object: keep it while code may be inside."""

    def __init__(self, library, name):
        self._library = library
        self._name = name.encode()  # the region has only the address
        self._region = _Region()
        library.xpt_region_init(self._region, self._name)

    def start(self):
        self._library.xpt_region_start(self._region)

    def stop(self):
        self._library.xpt_region_stop(self._region)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def __call__(self, function):
        @functools.wraps(function)
        def marked(*arguments, **named):
            with self:
                return function(*arguments, **named)
        return marked

    def totals(self):
        """What was kept; times in ns."""
        numbers = (ctypes.c_uint64 * len(Totals._fields))()
        self._library.xpt_region_get(self._region, numbers)
        return Totals(*numbers)

    def print(self):
        self._library.xpt_region_print(self._region)

    def __del__(self):
        self._library.xpt_region_destroy(self._region)
