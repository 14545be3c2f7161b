# SPDX-License-Identifier: BSD-2-Clause
"""Regions of Python code that xputrace shows: with a context manager, as a decorator, or by start and stop.

    import xputrace

    with xputrace.region("decode", request=traceparent):
        ...

    @xputrace.region("preprocess")
    def preprocess(image): ...

A region costs about a microsecond, and more while a tracer looks. The functions come from libxputrace; where that is not installed,
nothing is marked, and `available` is False. XPUTRACE_LIBRARY names another file. See xpt_region(3).

Each `with` marks a stretch of its own: regions of one name may overlap, as coroutines do, and threads may share one. A region ends on the
thread that began it.
"""

import collections
import ctypes
import functools
import inspect
import os
import threading

__all__ = ["Region", "Totals", "available", "enabled", "region"]

Totals = collections.namedtuple("Totals", "entries total_time min_time max_time unmatched")


class _Region(ctypes.Structure):
    """struct xpt_region: 80 bytes, of which only the name is anybody's."""
    _fields_ = [("name", ctypes.c_char_p), ("private", ctypes.c_uint64 * 9)]


def _load():
    """The library, or None."""
    try:
        library = ctypes.CDLL(os.environ.get("XPUTRACE_LIBRARY") or "libxputrace.so.0")
        pointer = ctypes.POINTER(_Region)
        for name in ("start", "stop", "print", "clear", "destroy"):
            function = getattr(library, "xpt_region_" + name)
            function.argtypes, function.restype = [pointer], None
        library.xpt_region_init.argtypes = [pointer, ctypes.c_char_p]
        library.xpt_region_get.argtypes = [pointer, ctypes.POINTER(ctypes.c_uint64)]
        library.xpt_region_init.restype = library.xpt_region_get.restype = None
    except (OSError, AttributeError):
        return None
    try:
        library.xpt_region_start_request.argtypes = [pointer, ctypes.c_char_p]
        library.xpt_region_stop_request.argtypes = [pointer]
        library.xpt_region_start_request.restype = library.xpt_region_stop_request.restype = None
    except AttributeError:  # of an older version, which has no requests
        library.xpt_region_start_request = lambda region, request: library.xpt_region_start(region)
        library.xpt_region_stop_request = library.xpt_region_stop
    return library


_library = _load()
available = _library is not None


def enabled():
    """Whether regions keep count in this process, as XPUTRACE_REGIONS=enabled asks for."""
    return available and bool(_library.xpt_region_enabled())


def _text(text):
    """As the C library has it: up to the first zero byte."""
    return (text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")).split(b"\0")[0]


class _Names:
    """The regions of one name: of each, one is kept for every stretch that was open at once."""

    def __init__(self, name):
        self.name = _text(name)
        self.all = []
        self.spare = []
        self.lock = threading.Lock()

    def take(self):
        try:
            return self.spare.pop()
        except IndexError:
            made = _Region()
            _library.xpt_region_init(made, self.name)
            with self.lock:
                self.all.append(made)
            return made


_names = {}
_names_lock = threading.Lock()


def _names_of(name):
    found = _names.get(name)
    if found is None:
        with _names_lock:
            found = _names.setdefault(name, _Names(name))
    return found


class Region:
    """What region() makes: a context manager, and a decorator of functions and coroutine functions."""

    def __init__(self, name, request=None):
        self._names = _names_of(name)
        self._request = None if request is None else _text(request)
        self._open = threading.local()

    def _stack(self):
        try:
            return self._open.stack
        except AttributeError:
            self._open.stack = []
            return self._open.stack

    def _begin(self):
        region = self._names.take()
        if self._request:
            _library.xpt_region_start_request(region, self._request)
        else:
            _library.xpt_region_start(region)
        return region

    def _end(self, region):
        if self._request:
            _library.xpt_region_stop_request(region)
        else:
            _library.xpt_region_stop(region)
        self._names.spare.append(region)

    def start(self):
        """Begins the region on this thread."""
        if available:
            self._stack().append(self._begin())

    def stop(self):
        """Ends what this thread has begun last with this object; without a start it does nothing."""
        if available and self._stack():
            self._end(self._stack().pop())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def __call__(self, function):
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def marked(*arguments, **named):
                # Others may begin and end it meanwhile: each has its own.
                region = self._begin() if available else None
                try:
                    return await function(*arguments, **named)
                finally:
                    if region is not None:
                        self._end(region)
        else:
            @functools.wraps(function)
            def marked(*arguments, **named):
                with self:
                    return function(*arguments, **named)
        return marked

    def totals(self):
        """What all regions of the name have kept in this process; times in ns. 0 unless enabled()."""
        kept = []
        for each in list(self._names.all):
            numbers = (ctypes.c_uint64 * len(Totals._fields))()
            _library.xpt_region_get(each, numbers)
            kept.append(Totals(*numbers))
        used = [one for one in kept if one.entries]
        return Totals(sum(one.entries for one in kept), sum(one.total_time for one in kept),
                      min((one.min_time for one in used), default=0), max((one.max_time for one in kept), default=0),
                      sum(one.unmatched for one in kept))


def region(name, request=None):
    """A region of that name. request: id of what it is for, a W3C traceparent or any other text: `xputrace report --request` finds it."""
    return Region(name, request)
