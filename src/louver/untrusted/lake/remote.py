"""A warehouse behind a service, with the interface of a local one."""

from __future__ import annotations

from urllib.parse import quote

from pyiceberg.exceptions import RESTError
from requests import RequestException

from louver import errors
from louver.untrusted.lake.catalogs import SESSION, opened
from louver.untrusted.lake.http import HttpObjects, Service
from louver.untrusted.lake.warehouse import NAMESPACE, Warehouse

_MAX_LOCATION = 4_096


class RemoteWarehouse(Warehouse):
    """Tables, metadata and files, all through one service."""

    def __init__(self, service: Service) -> None:
        """Ask the service for the location of its warehouse, in its own notation."""
        self._service = service
        config = service.json("GET", "/v1/config")
        defaults = config.get("defaults") if isinstance(config, dict) else None
        location = defaults.get("warehouse") if isinstance(defaults, dict) else None
        if not isinstance(location, str) or not 0 < len(location) < _MAX_LOCATION:
            raise errors.make(
                "serve.reply", place=service.address, detail="the name of the warehouse is missing"
            )
        self.objects = HttpObjects(service)
        try:
            catalog = opened(
                "rest", {"uri": service.url, SESSION: service.session}, location, self.objects
            )
            super().__init__(location, catalog, {})
        except (RESTError, RequestException) as error:
            detail = type(error).__name__
            raise errors.make("serve.reply", place=service.address, detail=detail) from error

    def pointer(self, name: str) -> str:
        """The location of the table's metadata, which changes with every commit."""
        path = f"/v1/namespaces/{NAMESPACE}/tables/{quote(name, safe='')}/pointer"
        reply = self._service.json("GET", path)
        pointer = reply.get("metadata-location") if isinstance(reply, dict) else None
        if not isinstance(pointer, str):
            raise errors.make(
                "serve.reply", place=self._service.address, detail="the pointer is missing"
            )
        return pointer
