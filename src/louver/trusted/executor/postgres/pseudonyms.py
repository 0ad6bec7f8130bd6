"""What the server gets for the names of channels, payloads and numbers of locks (spec/notify.md).

It must match what clients say with what others say, and learns nothing else of it: the names are
keyed hashes, and the payloads sealed.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres.messages import said

_CHANNEL, _PAYLOAD, _LOCK = "notify channel", "notify payload", "advisory lock"
_STEP_BYTES = 64
"""Payloads are as long as a multiple of this, so that their lengths tell little."""
_LENGTH_BYTES = 2
#: PostgreSQL's, of a payload; the sealed one is longer.
_MOST_BYTES, _MOST_SENT = 7_999, 7_999


def channel(context: Context, name: str) -> str:
    """What stands for the name of a channel: 40 hex digits behind a letter."""
    return "c" + context.keyring.mac(_CHANNEL, _within(context, name.encode())).hex()[:40]


def sealed(context: Context, name: str, payload: str) -> str:
    """What stands for a payload; another text each time."""
    plain = payload.encode()
    if len(plain) > _MOST_BYTES:
        raise said("22023", "payload string too long")
    padded = len(plain).to_bytes(_LENGTH_BYTES, "big") + plain
    padded += bytes(-len(padded) % _STEP_BYTES)
    binding = _within(context, name.encode())
    text = b64encode(context.keyring.seal_blob(_PAYLOAD, binding, padded)).decode()
    if len(text) > _MOST_SENT:
        hint = "A payload is sealed and so becomes longer: 5,900 bytes are the most."
        raise said("22023", "payload string too long", hint)
    return text


def opened(context: Context, name: str, text: str) -> str:
    """The payload again; raises where no client of this database has sent it to this channel."""
    try:
        sent = b64decode(text, validate=True)
    except ValueError:
        raise errors.make("reply.format", detail="a notification of another form") from None
    padded = context.keyring.open_blob(_PAYLOAD, _within(context, name.encode()), sent)
    length = int.from_bytes(padded[:_LENGTH_BYTES], "big")
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length].decode()


def lock(context: Context, numbers: tuple[int, ...]) -> int:
    """What stands for the number of a lock, or for its two numbers: 64 bits with a sign."""
    said_ = ",".join(map(str, (len(numbers), *numbers))).encode()
    code = context.keyring.mac(_LOCK, _within(context, said_))
    return int.from_bytes(code[:8], "big", signed=True)


def _within(context: Context, what: bytes) -> bytes:
    """Databases of one key file have nothing in common."""
    return context.catalog.database_id.encode() + b"\0" + what
