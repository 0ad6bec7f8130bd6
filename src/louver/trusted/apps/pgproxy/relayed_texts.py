"""Which values of a server's are relayed as texts: those that no setting prints otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor.local.postgres.wire import Described, Wire

#: Types whose texts no setting changes; of date and timestamp the server's are ISO's.
FIRM = frozenset((16, 20, 21, 23, 25, 1042, 1043, 1700, 2950))
_ISO = frozenset((1082, 1114))


def shown(wire: Wire, columns: Sequence[Described]) -> list[tuple[Described, bool]]:
    """Columns with whether their texts may be relayed."""
    return [(column, _is_firm(wire, column[3])) for column in columns]


def are_relayed(wire: Wire, prepared: Prepared) -> bool:
    """Whether all columns of a query may be relayed as texts."""
    return all(_is_firm(wire, column[3]) for column in prepared.columns or ())


def _is_firm(wire: Wire, type_: int) -> bool:
    return type_ in FIRM or (type_ in _ISO and wire.is_printed(type_))
