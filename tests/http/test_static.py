"""The console and the browser runtime as files: what is served, how it is kept, and what is not."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request

from reattach.core.errors import Unauthenticated
from reattach.http.auth import Principal
from reattach.http.pages import HEADERS, POLICY, client_folder, load_pages

from ..support.service import Service
from .raw import connection

KINDS = {
    "/": "text/html",
    "/console/main.js": "text/javascript",
    "/console/style/base.css": "text/css",
    "/console/icon.svg": "image/svg+xml",
}


class NobodyKnown:
    """Has no user at all."""

    async def authenticate(self, request: Request) -> Principal:
        raise Unauthenticated("nobody is known here")


async def test_every_file_is_served_and_kept(service: Service) -> None:
    """With its type, the headers that tie it down, and a tag under which it is not sent twice."""
    for address, page in load_pages().items():
        answer = await service.client.get(address)
        assert (answer.status_code, answer.content) == (200, page.content), address
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        again = await service.client.get(address, headers={"if-none-match": f'"other", W/{answer.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"])
        assert again.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(("address", "kind"), KINDS.items())
async def test_types_are_told(service: Service, address: str, kind: str) -> None:
    """Browsers load no module and no style whose type is wrong; HEAD says the same as GET."""
    answer = await service.client.head(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == kind


async def test_a_page_of_before_a_deploy_is_not_shown_after_it(service: Service) -> None:
    """Whoever has it asks each time, and a file that changed has another tag."""
    answer = await service.client.get("/", headers={"if-none-match": '"what another version had"'})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    tags = [page.tag for page in load_pages().values()]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    "path",
    [
        "/console/../http/app.py", "/console/%2e%2e/%2e%2e/http/app.py", "/client/..%2f..%2fhttp/app.py", "/client//etc/passwd",
        "/client/../../../pyproject.toml", "/console/", "/console", "/client", "/client/console/main.js", "/index.html",
        "/console/index.html", "/console/main.js/", "/console/main.js%00.css", "//console/main.js", "/console\\main.js",
    ],
)  # fmt: skip
async def test_nothing_else_is_served(service: Service, path: str) -> None:
    """Whatever a path looks like: it is in the table or it leads nowhere."""
    async with connection(service.base_url) as raw:
        raw.ask("GET", path, "Connection: close")
        seen = await raw.until_end()
    assert seen.startswith(b"HTTP/1.1 404")
    assert b'"code":"not_found"' in seen


async def test_a_page_takes_no_orders(service: Service) -> None:
    """Only GET and HEAD."""
    answer = await service.client.post("/")
    assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")


async def test_pages_are_public_and_data_is_not(replicas: Callable[..., Any]) -> None:
    """The page comes to whoever asks; what it shows, only to who may see it."""
    service = await replicas(authenticator=NobodyKnown())
    assert (await service.client.get("/")).status_code == 200
    assert (await service.client.get("/agent-runs")).status_code == 401


def test_nothing_of_the_page_is_inline_or_elsewhere() -> None:
    """The policy would break the page otherwise: no script or style in the markup, and no address of another host in any file."""
    index = load_pages()["/"].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", index)
    for address, page in load_pages().items():
        if page.media_type.startswith(("text/html", "text/javascript", "text/css")) and not address.startswith("/client/"):
            assert not re.search(r"(?:src|href|url|import|from)\W{0,3}https?:", page.content.decode()), address


def test_what_files_name_exists() -> None:
    """Every import, style and font leads to a file that is served."""
    pages = load_pages()
    found = re.findall(r'(?:src|href)="([^"#]+)"', pages["/"].content.decode())
    assert found
    assert [name for name in found if f"/{name}" not in pages] == []
    for address, page in pages.items():
        if not page.media_type.startswith(("text/javascript", "text/css")):
            continue
        for name in re.findall(r"""(?:from\s+|import\s+|url\()["'](\.[^"']+)["']""", page.content.decode()):
            resolved = "/" + "/".join(_resolved((*address.split("/")[1:-1], *name.split("/"))))
            assert resolved in pages, f"{address} names {name}"


def test_every_module_is_announced() -> None:
    """The page names all that it is made of, so that nothing is found out one import after the other."""
    told = set(re.findall(r'rel="modulepreload" href="([^"]+)"', load_pages()["/"].content.decode()))
    needed, open_ = set[str](), ["/console/main.js"]
    while open_:
        address = open_.pop()
        if address in needed:
            continue
        needed.add(address)
        for name in re.findall(r"""from ["'](\.[^"']+)["']""", load_pages()[address].content.decode()):
            open_.append("/" + "/".join(_resolved((*address.split("/")[1:-1], *name.split("/")))))
    assert {f"/{name}" for name in told} == needed - {"/console/main.js"}


def _resolved(parts: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if part == "..":
            kept.pop()
        elif part != ".":
            kept.append(part)
    return kept


def test_every_file_of_the_console_has_a_type() -> None:
    """None of them is silently left out."""
    served = {f"/{path.relative_to(client_folder())}" for path in (client_folder() / "console").rglob("*") if path.is_file()}
    assert served - {"/console/index.html"} <= set(load_pages())
