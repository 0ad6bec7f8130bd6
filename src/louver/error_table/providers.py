"""Errors of private questions: the language, the providers, their answers."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- the language of private questions ---
    (
        "provider.language",
        "NotSupportedError",
        "This cannot be asked in private: {detail}.",
        "Providers answer a part of SQL only: aggregates, or the first rows, of rows that match "
        "private equalities and at most one private interval.",
        "{instead}.",
    ),
    (
        "provider.wide",
        "NotSupportedError",
        "The private condition needs {bits} bits, and a point has at most {most}.",
        "The values of its columns are spread too widely for the scheme in use.",
        "Round the bounded column (such as date_trunc('minute', t)), or compare fewer columns.",
    ),
    (
        "provider.large",
        "OperationalError",
        "The answers of this question would take {bytes} bytes; the provider allows {most}.",
        "Every record is as wide as the widest, so that its size tells nothing.",
        "Ask for fewer rows, columns or groups, or narrow the question by a public condition.",
    ),
    (
        "provider.constant",
        "DataError",
        "A private value cannot be compared with {expression}.",
        "It is of another kind, such as a number where a text is wanted, or no value of that kind, "
        "such as a month 13.",
        "Give a value of the expression's type, or cast it: PRIVATE(DATE '2013-07-04').",
    ),
    # --- providers and their answers ---
    (
        "provider.few",
        "InterfaceError",
        "providers:// names {count} provider(s); a private question needs at least two.",
        "What one machine is sent must not be enough to know the question.",
        "Name two or more that different people run: providers://a:7001,b:7001.",
    ),
    (
        "provider.same",
        "InterfaceError",
        "{first} and {second} are the same provider.",
        "Two shares of a question at one machine are the question.",
        "Name machines that different people run.",
    ),
    (
        "provider.unreachable",
        "OperationalError",
        "The provider {place} did not answer: {detail}.",
        "It is down, too slow, or something on the way is.",
        "Check the address and the service, and ask again: fresh shares are made.",
    ),
    (
        "provider.reply",
        "OperationalError",
        "The provider {place} answered what is no answer: {detail}.",
        "It is at fault, of another release, or something on the way altered the answer.",
        "Ask another provider; tell this one's operator.",
    ),
    (
        "provider.lied",
        "VerificationError",
        "The answers do not verify: at least one provider computed something else.",
        "A provider is at fault or lies; which one cannot be told from the answer.",
        "Do not use this answer. Ask again with another pair of providers to find out which.",
    ),
    (
        "provider.differ",
        "OperationalError",
        "The providers {first} and {second} hold different data: {detail}.",
        "One of them was reloaded, or serves another file. Shares of different data never add up.",
        "Wait until both serve the same data, or name others.",
    ),
    (
        "provider.version",
        "OperationalError",
        "The provider does not hold the asked version of the data any more.",
        "It was reloaded since the question was prepared.",
        "Ask again: the question is prepared on the present version.",
    ),
    (
        "provider.shape",
        "OperationalError",
        "The provider does not know the shape of this question.",
        "It was restarted, or the table was dropped from its cache.",
        "Ask again: the question is prepared anew.",
    ),
    (
        "provider.refused",
        "ProgrammingError",
        "The provider refuses the question: {detail}.",
        "It uses something that a provider does not compute for strangers, or names what is not "
        "there.",
        "Use plain expressions of the columns of the provider's tables.",
    ),
    (
        "provider.share",
        "ProgrammingError",
        "The provider cannot use a share: {detail}.",
        "It is malformed, cut short, or made for another domain.",
        "Ask again; if it happens again, the releases of client and provider differ.",
    ),
    (
        "provider.replayed",
        "ProgrammingError",
        "The provider has seen this question's shares before.",
        "A share is used once: somebody sent it again, on purpose or by mistake.",
        "Ask again: fresh shares are made.",
    ),
    (
        "provider.slow",
        "OperationalError",
        "The provider gave up after {seconds} seconds.",
        "The table is large, the question has many clauses, or the provider is busy.",
        "Narrow the question by a public condition, or ask again later.",
    ),
    (
        "provider.data",
        "OperationalError",
        "The data cannot be served: {detail}.",
        "A file is missing, unreadable, of an unknown kind, or names a table twice.",
        "Give Parquet, CSV or DuckDB files with --data.",
    ),
    (
        "provider.authorities",
        "OperationalError",
        "The authorities in {path} cannot be used: {detail}.",
        "LOUVER_CERTIFICATES names a file that is missing, unreadable, or not in PEM form.",
        "Name a PEM file with the certificates of the authorities that the providers' are from.",
    ),
)
