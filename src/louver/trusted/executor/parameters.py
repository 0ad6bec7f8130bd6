"""The values that are given for the placeholders of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from louver import errors
from louver.trusted.planner.sql import lexer

Parameters = Sequence[object] | Mapping[str, object] | None


def split(sql: str, parameters: Parameters) -> list[lexer.Text]:
    """The statements of a text, each with its placeholders.

    Raises:
        errors.Error: `parameter.excess`, where a value is for no placeholder of any of them:
            somebody who forgot a placeholder has written a value into the text; `parameter.kind`
            for one text in the place of a list of values.
    """
    if not isinstance(sql, str):
        raise errors.make("parameter.kind", detail="a statement is a text")
    if isinstance(parameters, str | bytes):
        raise errors.make("parameter.kind", detail="a string was given instead of a list")
    if not isinstance(parameters, Mapping | Sequence | None):
        raise errors.make("parameter.kind", detail="values must be given as a list or by name")
    names = frozenset(parameters) if isinstance(parameters, Mapping) else frozenset[str]()
    texts = lexer.split(sql, names)
    check_excess(texts, parameters)
    return texts


def check_excess(texts: Sequence[lexer.Text], parameters: Parameters) -> None:
    """See `split`."""
    if not parameters or not texts:
        return
    if len(texts) == 1 and _is_in_order(texts[0], parameters):
        return
    used = {key for text in texts for key in text.parameters}
    if isinstance(parameters, Mapping):
        wanted = {str(key) for key in used}
        left = [str(key) for key in parameters if str(key) not in wanted]
    else:
        numbers = [key for key in used if isinstance(key, int)]
        if len(numbers) < len(used):
            return  # Names: `bound` tells that a sequence is of no use.
        left = [str(n) for n in range(max(numbers, default=0) + 1, len(parameters) + 1)]
    if left:
        raise errors.make("parameter.excess", excess=", ".join(left[:8]))


def bound(text: lexer.Text, parameters: Parameters) -> list[object]:
    """The values of a statement's placeholders, in the order of the text.

    Raises:
        errors.Error: `parameter.count`, `parameter.kind`.
    """
    if not text.parameters:
        return []
    if _is_in_order(text, parameters):
        return list(parameters or ())
    values: list[object] = []
    given = [] if isinstance(parameters, Mapping) else list(parameters or ())
    for key in text.parameters:
        if isinstance(parameters, Mapping):
            if key not in parameters and str(key) not in parameters:
                raise errors.make("parameter.count", expected=key, given=len(parameters))
            values.append(parameters[key if key in parameters else str(key)])  # type: ignore[index]
            continue
        if isinstance(key, str):
            raise errors.make("parameter.kind", detail=f"a sequence is given for the name {key}")
        if not 0 < key <= len(given):
            raise errors.make(
                "parameter.count", expected=len(set(text.parameters)), given=len(given)
            )
        values.append(given[key - 1])
    return values


def _is_in_order(text: lexer.Text, parameters: Parameters) -> bool:
    """Whether a list has one value for each placeholder, in the order of the text."""
    count = len(text.parameters)
    if isinstance(parameters, Mapping) or parameters is None or len(parameters) != count:
        return False
    return text.parameters == tuple(range(1, count + 1))
