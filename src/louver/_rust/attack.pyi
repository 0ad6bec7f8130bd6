"""What a server could learn from its own state."""

import pyarrow as pa

def common_key(column: pa.Array | pa.ChunkedArray, n: bytes) -> list[int | None]: ...
def coprime(
    a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray, n: bytes
) -> list[tuple[int, int] | None]: ...
def linear(
    r_u: pa.Array | pa.ChunkedArray, r_a: pa.Array | pa.ChunkedArray, n: bytes
) -> tuple[int, list[int | None]]: ...
