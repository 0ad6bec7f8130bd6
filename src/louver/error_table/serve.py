"""Errors of services and of those who talk to them over HTTP."""

from __future__ import annotations

from louver.error_table.row import Row

ROWS: tuple[Row, ...] = (
    # --- starting a service ---
    (
        "serve.listen",
        "OperationalError",
        "The service cannot listen at {address}: {detail}.",
        "Another program uses the port, or the address is not one of this machine.",
        "Choose another address or port; port 0 takes a free one.",
    ),
    (
        "serve.plain",
        "InterfaceError",
        "{address} can be reached from other machines, and no certificate is given.",
        "Without TLS everyone on the way reads tokens and the shared secret, and can alter "
        "answers.",
        "Give --certificate and --key, listen on 127.0.0.1 behind a proxy that ends TLS, or say "
        "--insecure if the network itself is protected.",
    ),
    (
        "serve.certificate",
        "OperationalError",
        "The certificate or its key cannot be used: {detail}.",
        "A file is missing or unreadable, is not in PEM form, or they do not belong together.",
        "Check --certificate and --key.",
    ),
    (
        "serve.secret",
        "OperationalError",
        "The shared secret in {path} cannot be used: {detail}.",
        "It is one line of 16 to 1,024 printable characters without spaces, in a file that only "
        "its owner reads (mode 0600).",
        "Make one with `umask 077; head -c 32 /dev/urandom | base64 > FILE`.",
    ),
    # --- what a service answers ---
    (
        "serve.denied",
        "OperationalError",
        "The service at {place} wants a shared secret, and the right one was not given.",
        "The request has no Authorization header, or one with another secret.",
        "Name the file with the service's secret; ask who runs the service for it.",
    ),
    (
        "serve.request",
        "ProgrammingError",
        "The service does not understand this request: {detail}.",
        "The address or method is none of its own, or a part is malformed or not allowed.",
        "Run the same release on both sides; spec/prune.md lists all requests.",
    ),
    (
        "serve.large",
        "OperationalError",
        "A request is larger than the service takes: {limit_bytes} bytes.",
        "Bodies are bounded, so that no client can use up the service's memory.",
        "Send less at a time: fewer tokens, or smaller files.",
    ),
    (
        "serve.slow",
        "OperationalError",
        "The service stopped waiting for the rest of a request after {seconds} seconds.",
        "The client or the network in between is too slow, or hangs.",
        "Try again.",
    ),
    (
        "serve.busy",
        "OperationalError",
        "The service has as many requests under way as it takes.",
        "Requests, bodies and plans that run at the same time are bounded.",
        "Try again a moment later, or raise the service's limits.",
    ),
    (
        "serve.ending",
        "OperationalError",
        "The service was told to end, and did not finish the request.",
        "It is being restarted, or shut down.",
        "Ask again when it runs again.",
    ),
    (
        "serve.time",
        "OperationalError",
        "The service gave up planning after {seconds} seconds.",
        "The table has very many files, or the condition very many tokens.",
        "Ask for less at a time, or raise --plan-seconds.",
    ),
    # --- what a client finds ---
    (
        "serve.unreachable",
        "OperationalError",
        "The service at {place} cannot be reached: {detail}.",
        "It does not run, its address is wrong, its certificate is not trusted, or the network "
        "failed.",
        "Check the address, and start it with `louver serve prune WAREHOUSE`.",
    ),
    (
        "serve.reply",
        "OperationalError",
        "The service at {place} gave an answer that is not one of its own: {detail}.",
        "Something else answers there, it failed, or it runs another release.",
        "Check the address, and run the same release on both sides.",
    ),
)
