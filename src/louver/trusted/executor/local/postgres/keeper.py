"""Keeps a private PostgreSQL for as long as the process that started it lives, then removes it.

It runs as a program of its own, without anything of Louver's, so that a server and its data are
gone also after that process was killed: it holds the read end of a pipe that ends with the process.

    python -I -S keeper.py PARENT LOCK FOLDER COMMAND…

LOCK is the number of an open file that is locked for as long as the folder is in use.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LOOK_MS = 1_000
_PATIENCE_S = 10.0


def main(words: list[str]) -> None:
    """Start the command, wait for the end of the parent or of the command, and clean up."""
    parent, lock, folder, *command = words
    os.set_inheritable(int(lock), False)
    over: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.append(1))
    server = _started(command)
    try:
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        while not over and os.getppid() == int(parent):
            # Nothing is written to the pipe: an event is its end.
            if poll.poll(_LOOK_MS) or os.waitpid(server, os.WNOHANG)[0]:
                break
    finally:
        _end(server)
        import shutil

        # What is locked is swept by the next process that starts, so the lock goes last.
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _started(command: list[str]) -> int:
    """A child that ends at once (SIGQUIT) with this process, which stays over exec."""
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGQUIT)
        if os.getppid() == keeper:
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.execvp(command[0], command)  # noqa: S606 - the words are of the process that asked
    finally:
        os._exit(127)


def _end(server: int) -> None:
    """A server that ends at once writes nothing; one that does not is killed."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        try:
            os.kill(server, number)
            end = time.monotonic() + _PATIENCE_S
            while time.monotonic() < end:
                if os.waitpid(server, os.WNOHANG)[0]:
                    return
                time.sleep(0.005)
        except (ChildProcessError, ProcessLookupError):
            return


if __name__ == "__main__":
    main(sys.argv[1:])
