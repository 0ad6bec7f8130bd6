"""CSV in DuckDB's own text of values: DuckDB writes it into a pipe, so no file holds plaintext."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

import duckdb

from louver.names import quoted
from louver.untrusted.engines.interruption import CtrlC

_READ_BYTES = 1 << 18


class _Reader(threading.Thread):
    """Hands on what arrives in a pipe; an error of the receiver ends the pipe."""

    def __init__(self, descriptor: int, write: Callable[[bytes], object]) -> None:
        super().__init__(name="louver-csv", daemon=True)
        self._descriptor = descriptor
        self._write = write
        self.error: BaseException | None = None

    def run(self) -> None:
        """Read to the end of the pipe."""
        try:
            while data := os.read(self._descriptor, _READ_BYTES):
                self._write(data)
        except BaseException as error:  # noqa: BLE001 - raised again by `write_csv`
            self.error = error
        finally:
            os.close(self._descriptor)


def write_csv(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[str], write: Callable[[bytes], object]
) -> None:
    """Write the table louver_rows, whose columns are c0, c1, …, under a header of these names."""
    items = ", ".join(f"c{position} AS {quoted(name)}" for position, name in enumerate(columns))
    source, target = os.pipe()
    reader = _Reader(source, write)
    reader.start()
    try:
        with CtrlC(connection.interrupt):
            connection.execute(
                f"COPY (SELECT {items} FROM louver_rows) TO '/dev/fd/{target}' (FORMAT csv, HEADER)"
            )
    except duckdb.Error:
        if reader.error is None:
            raise
    finally:
        os.close(target)
        reader.join()
    if reader.error is not None:
        raise reader.error
