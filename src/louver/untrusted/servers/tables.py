"""Tables over HTTP: the part of Iceberg's REST catalog that Louver needs, and plans by token.

PyIceberg's RestCatalog, and others, can load and commit tables here. Plans are requested by token
only: the plaintext filter that an ordinary client would send for planning is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from pydantic import ValidationError
from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.typedef import IcebergBaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from louver import errors
from louver.names import fold
from louver.untrusted.lake import plan as plans
from louver.untrusted.lake.catalogs import require_tame
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import NAMESPACE, Warehouse
from louver.untrusted.servers.limits import Work, body
from louver.wire import prune
from louver.wire.prune import FilePlan, Where

MAX_JSON_BYTES = 16 << 20
_KEPT_ROOTS = 16
_NAME = re.compile(r"t[0-9]{1,19}")
_ACTIONS = {
    "add-snapshot", "set-snapshot-ref", "remove-snapshots", "remove-snapshot-ref", "add-schema",
    "set-current-schema", "set-properties", "remove-properties", "assign-uuid",
    "upgrade-format-version",
}  # fmt: skip
_ENDPOINTS = [
    "GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}", "POST /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
]  # fmt: skip
_Model = TypeVar("_Model", bound=IcebergBaseModel)


class Tables:
    """The endpoints below /v1/config and /v1/namespaces."""

    def __init__(self, warehouse: Warehouse, work: Work) -> None:
        """Serve the tables of this warehouse."""
        self._warehouse = warehouse
        self._work = work
        self._roots: dict[tuple[str, int], Root] = {}

    def routes(self) -> list[Route]:
        """The routes to mount."""
        space = "/v1/namespaces/{namespace}"
        table = space + "/tables/{table}"
        return [
            Route("/v1/config", self.config, methods=["GET"]),
            Route("/v1/namespaces", self.namespaces, methods=["GET"]),
            Route("/v1/namespaces", self.make_namespace, methods=["POST"]),
            Route(space, self.namespace, methods=["GET", "HEAD"]),
            Route(space + "/tables", self.listed, methods=["GET"]),
            Route(space + "/tables", self.create, methods=["POST"]),
            Route(table, self.load, methods=["GET", "HEAD"]),
            Route(table, self.commit, methods=["POST"]),
            Route(table, self.drop, methods=["DELETE"]),
            Route(table + "/pointer", self.pointer, methods=["GET"]),
            Route(table + "/plan", self.plan, methods=["POST"]),
        ]

    async def config(self, request: Request) -> Response:
        """The location of the warehouse, in its own notation, and the supported endpoints."""
        request.scope["louver.iceberg"] = True
        defaults = {"warehouse": self._warehouse.location}
        return JSONResponse({"defaults": defaults, "overrides": {}, "endpoints": _ENDPOINTS})

    async def namespaces(self, request: Request) -> Response:
        """The only namespace."""
        inner = request.query_params.get("parent")
        return JSONResponse({"namespaces": [] if inner else [[NAMESPACE]]})

    async def make_namespace(self, request: Request) -> Response:
        """The only namespace, which already exists."""
        request.scope["louver.iceberg"] = True
        await body(request, self._work, MAX_JSON_BYTES)
        name = {"message": "there is one namespace", "type": "AlreadyExistsException", "code": 409}
        return JSONResponse({"error": name}, 409)

    async def namespace(self, request: Request) -> Response:
        """The namespace `louver`."""
        self._require_space(request)
        return JSONResponse({"namespace": [NAMESPACE], "properties": {}})

    async def listed(self, request: Request) -> Response:
        """The names of all tables."""
        self._require_space(request)
        names = await self._work.run(self._warehouse.tables)
        identifiers = [{"namespace": [NAMESPACE], "name": name} for name in names]
        return JSONResponse({"identifiers": identifiers})

    async def create(self, request: Request) -> Response:
        """Create a table, at the location of all tables."""
        self._require_space(request)
        data = await body(request, self._work, MAX_JSON_BYTES)
        parsed = _parsed(CreateTableRequest, data)
        location = f"{self._warehouse.location}/{NAMESPACE}/{parsed.name}"
        if not _NAME.fullmatch(parsed.name) or parsed.location not in (None, location):
            raise errors.make("serve.request", detail="a table with another name or location")
        if parsed.stage_create or (parsed.partition_spec and parsed.partition_spec.fields):
            raise errors.make("serve.request", detail="a table that is staged or partitioned")
        _require_tame(parsed.properties)
        metadata = await self._catalog(
            parsed.name,
            lambda: self._warehouse.catalog.create_table(
                (NAMESPACE, parsed.name),
                parsed.table_schema,
                location,
                properties=parsed.properties,
            ),
        )
        return _metadata_response(metadata)

    async def load(self, request: Request) -> Response:
        """The metadata of a table."""
        name = self._name(request)
        table = await self._work.run(lambda: self._warehouse.table(name))
        return Response(status_code=204) if request.method == "HEAD" else _metadata_response(table)

    async def commit(self, request: Request) -> Response:
        """Change a table if its state is the one that the client expects."""
        name = self._name(request)
        parsed = _parsed(CommitTableRequest, await body(request, self._work, MAX_JSON_BYTES))
        if {update.action for update in parsed.updates} - _ACTIONS:
            raise errors.make("serve.request", detail="a change that is not allowed")
        for update in parsed.updates:
            _require_tame(getattr(update, "updates", {}))
        catalog = self._warehouse.catalog

        def work() -> Response:
            table = catalog.load_table((NAMESPACE, name))
            done = catalog.commit_table(table, parsed.requirements, parsed.updates)
            return _json(done)

        return await self._catalog(name, work)

    async def drop(self, request: Request) -> Response:
        """Remove a table from the catalog; the client deletes its files."""
        name = self._name(request)
        if fold(request.query_params.get("purgeRequested", "")) == "true":
            raise errors.make("serve.request", detail="a table is dropped without its files")
        catalog = self._warehouse.catalog
        await self._catalog(name, lambda: catalog.drop_table((NAMESPACE, name)))
        return Response(status_code=204)

    async def pointer(self, request: Request) -> Response:
        """The location of the table's metadata, which changes with every commit."""
        name = self._name(request)
        pointer = await self._work.run(lambda: self._warehouse.pointer(name))
        return JSONResponse({"metadata-location": pointer})

    async def plan(self, request: Request) -> Response:
        """The files of a snapshot that match a condition over tokens."""
        name = self._name(request)
        request.scope["louver.iceberg"] = False
        snapshot = request.query_params.get("snapshot-id", "")
        if not re.fullmatch(r"-?[0-9]{1,19}", snapshot):
            raise errors.make("serve.request", detail="a plan request without snapshot-id")
        if request.headers.get("content-type") != "application/octet-stream":
            raise errors.make("serve.request", detail="plans are requested by token only")
        where = prune.decode(await body(request, self._work, prune.MAX_BYTES))
        run = self._work.run
        reply = await run(lambda: self._planned(name, int(snapshot), where), self._work.plans)
        return StreamingResponse(reply.parts(), media_type="application/octet-stream")

    def _planned(self, name: str, snapshot_id: int, where: Where) -> FilePlan:
        seconds = self._work.limits.plan_seconds
        deadline = time.monotonic() + seconds

        def in_time(*_: object) -> None:
            if time.monotonic() > deadline:
                raise errors.make("serve.time", seconds=int(seconds))

        _require_tokens(where)
        root = self._root(name, snapshot_id)
        return plans.plan(self._warehouse.objects, root, where, check=in_time)

    def _root(self, name: str, snapshot_id: int) -> Root:
        """A snapshot's root; it never changes, so recently requested ones are cached."""
        key = (name, snapshot_id)
        root = self._roots.get(key) or self._warehouse.root(name, snapshot_id)
        if root is None:
            raise errors.make("lake.snapshot", table=name, snapshot=snapshot_id)
        while len(self._roots) >= _KEPT_ROOTS:
            self._roots.pop(next(iter(self._roots)), None)
        self._roots[key] = root
        return root

    def _name(self, request: Request) -> str:
        self._require_space(request)
        name = str(request.path_params["table"])
        if not _NAME.fullmatch(name):
            raise errors.make("lake.table", table=f"{name!r:.40}", place="the service")
        return name

    def _require_space(self, request: Request) -> None:
        request.scope["louver.iceberg"] = True
        if request.path_params["namespace"] != NAMESPACE:
            raise errors.make("lake.table", table="of another namespace", place="the service")

    async def _catalog(self, name: str, work: Callable[[], _Found]) -> _Found:
        """Run a function; a catalog's exceptions become our errors."""
        try:
            return await self._work.run(work)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise errors.make("lake.table", table=name, place="the service") from error
        except TableAlreadyExistsError as error:
            raise errors.make("lake.table.exists", table=name, place="the service") from error
        except CommitFailedException as error:
            raise errors.make("lake.conflict", table=name) from error
        except (ValidationError, ValueError) as error:
            raise errors.make("serve.request", detail="a change that cannot be made") from error
        except (SQLAlchemyError, OSError) as error:
            kind = type(error).__name__
            raise errors.make("lake.io", place="the service", detail=kind) from error


_Found = TypeVar("_Found")


def _parsed(model: type[_Model], data: bytes) -> _Model:
    try:
        return model.model_validate_json(data)
    except (ValidationError, ValueError, RecursionError) as error:
        raise errors.make("serve.request", detail="JSON of another shape") from error


def _require_tame(properties: dict[str, str]) -> None:
    try:
        require_tame(properties, "the request")
    except errors.VerificationError as error:
        raise errors.make("serve.request", detail="properties that name executable code") from error


def _require_tokens(where: Where) -> None:
    """Refuse malformed tokens, which are the client's fault, before anything is swept."""
    factory: Callable[[bytes], object] = import_module("louver._rust").server.Token
    try:
        for token in dict.fromkeys(prune.tokens(where)):
            factory(token)
    except ValueError as error:
        raise errors.make("wire.format", detail="a token is malformed") from error


def _metadata_response(table: Table) -> Response:
    location: dict[str, Any] = {"metadata-location": table.metadata_location}
    return _json(TableResponse(metadata=table.metadata, **location))


def _json(model: IcebergBaseModel) -> Response:
    return Response(model.model_dump_json(), media_type="application/json")
