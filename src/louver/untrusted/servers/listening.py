"""The options common to all services: address, certificate, authorization."""

from __future__ import annotations

import argparse


def add_listening(parser: argparse.ArgumentParser, address: str) -> None:
    """Declare the options; `address` is the default."""
    parser.add_argument(
        "--listen", default=address, metavar="HOST:PORT",
        help=f"where to listen (default: {address}; port 0 takes a free one)",
    )  # fmt: skip
    parser.add_argument("--certificate", metavar="FILE", help="TLS: the certificates, PEM")
    parser.add_argument("--key", metavar="FILE", help="TLS: the certificate's key, PEM")
    parser.add_argument(
        "--insecure", action="store_true",
        help="listen without TLS where other machines can reach it",
    )  # fmt: skip
    parser.add_argument(
        "--authorization", metavar="FILE",
        help="a file (mode 0600) with a secret that clients must show",
    )  # fmt: skip
