"""The error of a URL that cannot be used."""

from __future__ import annotations

from louver import errors


def wrong(detail: str) -> errors.Error:
    """``url.format`` with what is wrong, which must not quote a password."""
    return errors.make("url.format", detail=f"of postgresql://user@host:port/database, {detail}")
