"""No memory on disk: processes of our own leave no core file, wherever the system would put it.

Only the command line and the services call this. A program that imports Louver decides for itself.
"""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def switch_off() -> None:
    """Keep this process, and what it starts, from leaving its memory in a core file.

    The limit holds for files. Where the system pipes cores to a program, it ignores the limit,
    and only a process that is not dumpable leaves none; nor can another process of the same
    user then attach to it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        except (AttributeError, OSError):
            # A C library without it; the limit above still holds.
            return
