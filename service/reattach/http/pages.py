"""The console and the browser runtime: static files, from a table that is read once at start.

No path of a request ever reaches the file system: what is not in the table does not exist. Files are public, the data behind them is not.
"""

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from .bodies import NoQuery
from .dispatch import Resource
from .runs import not_modified
from .service import Call, Endpoint, Reply, Service

MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
"""What is served, by the end of its name; other files of the folder are not."""

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Nothing in the page may turn text into markup or code, whoever wrote the text.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""The page's Content-Security-Policy: this origin's own files and API, and nothing inline."""

HEADERS: Final = {
    # Kept, and asked about each time: a page of before a deploy is never shown after it.
    "cache-control": "no-cache",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_INDEX: Final = "index.html"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it is sent.

    Attributes:
        tag: Its ``ETag``: a digest of the content.
    """

    content: bytes
    media_type: str
    tag: str


def client_folder() -> Path:
    """Where the browser's files are, in the source tree as in an installed wheel."""
    return Path(str(files("reattach"))) / "client"


@cache
def load_pages() -> dict[str, Page]:
    """Every file by its address: ``/`` and ``/console/…`` are the page, ``/client/…`` is the runtime."""
    folder, found = client_folder(), dict[str, Page]()
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA_TYPES and path.is_file():
            name = path.relative_to(folder).as_posix()
            address = f"/{name}" if name.startswith("console/") else f"/client/{name}"
            found["/" if name == f"console/{_INDEX}" else address] = _page(path)
    return found


def _page(path: Path) -> Page:
    content = path.read_bytes()
    return Page(content=content, media_type=MEDIA_TYPES[path.suffix], tag=f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def page_routes(service: Service) -> list[BaseRoute]:
    """One route per file, exact: there is no pattern that a request could be made to match."""
    return [Route(address, Resource(service, _label(address), [_endpoint(address, page)])) for address, page in load_pages().items()]


def _label(address: str) -> str:
    """What metrics call it: not one series for each file."""
    return address if address == "/" else f"/{address.split('/')[1]}/{{file}}"


def _endpoint(address: str, page: Page) -> Endpoint:
    async def show(call: Call) -> ASGIApp:
        known = ",".join(call.request.headers.getlist("if-none-match"))
        headers = {**HEADERS, "etag": page.tag}
        if not_modified(known, page.tag.strip('"')):
            return Response(status_code=304, headers=headers)
        return Response(page.content, headers={**headers, "content-type": page.media_type})

    return Endpoint(
        method="GET",
        path=address,
        handler=show,
        name="showPage",
        summary="A file of the console page or of the browser runtime.",
        action=None,
        query=NoQuery,
        answers={200: Reply(meaning="The file.", content={page.media_type: str}, headers=("ETag",))},
    )
