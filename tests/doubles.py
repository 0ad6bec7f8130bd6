"""Doubles that several tests share."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from louver import errors


class KeysDouble:
    """What bookkeeping needs of a key ring, without the compiled part."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id

    def mac(self, purpose: str, data: bytes) -> bytes:
        key = f"{self.key_id}\0{purpose}".encode()
        return hmac.digest(key, data, "sha256")

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        nonce = secrets.token_bytes(12)
        body = nonce + self._mask(nonce, plain)
        return self.mac(purpose, context + b"\0" + body) + body

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        code, body = sealed[:32], sealed[32:]
        if not hmac.compare_digest(code, self.mac(purpose, context + b"\0" + body)):
            raise errors.make("result.tampered", detail="a seal does not fit")
        return self._mask(body[:12], body[12:])

    def _mask(self, nonce: bytes, data: bytes) -> bytes:
        stream = hashlib.shake_256(self.key_id.encode() + nonce).digest(len(data))
        return bytes(a ^ b for a, b in zip(data, stream, strict=True))
