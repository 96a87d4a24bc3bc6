"""The console where callers need tokens: real ones, in the header or in a cookie."""

from pathlib import Path

import pytest

from reattach.store import Store

from ..support import drive
from ..support.factories import Replicas
from ..support.issuer import SECRET, hs256
from .conftest import Profiles

ISSUER = hs256()
COOKIE = "reattach"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A file with the secret."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return str(path)


@pytest.mark.provokes_network_errors
async def test_a_token_is_asked_for(replicas: Replicas, store: Store, profiles: Profiles, secret: str) -> None:
    """A wrong one is said to be wrong; a right one lives in the tab, survives a refresh and goes with signing out."""
    service = await replicas(jwt_keys=secret)
    hand = await drive.start(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.says("h1", "Who are you?")
    await tab.do(tab.page.get_by_label("Token").fill("a-guess"))
    await tab.press("Enter")
    await tab.says("h1", "This token was not accepted")
    token = ISSUER.token(tenant=drive.TENANT, sub=drive.SUBJECT)
    await tab.do(tab.page.get_by_label("Token").fill(f"Bearer {token}"))
    await tab.press("Enter")
    await tab.says("h1", "support")
    await tab.says(".link-state", "Live")
    await tab.do(tab.page.reload())
    await tab.says("h1", "support")
    assert await tab.run("[localStorage.length, document.cookie]") == [0, ""]
    assert not [line for line in tab.asked if token in line], "the token is in an address"
    await tab.click("button", "Sign out")
    await tab.says("h1", "Who are you?")
    assert await tab.run("sessionStorage.getItem('reattach.token')") is None
    await hand.finish()


async def test_a_cookie_is_enough(replicas: Replicas, profiles: Profiles, secret: str) -> None:
    """Nothing is asked for, and commands are taken from this page."""
    service = await replicas(jwt_keys=secret, cookie=COOKIE)
    profile = await profiles(service.base_url)
    cookie = {"name": COOKIE, "value": ISSUER.token(tenant="acme", sub="ann"), "url": service.base_url, "httpOnly": True}
    await profile.cookie(cookie)
    tab = await profile.tab("/#/start?agent=support&input={}")
    await tab.click("button", "Start")
    await tab.says(".run-title .state", "queued")
    await tab.see("ann", within=".facts")
    await tab.says(".link-state", "Live")
    await tab.click("button", "Stop …")
    await tab.click("button", "Stop the run")
    await tab.says(".run-title .state", "cancelled")
    assert await tab.run("document.querySelector('#sign-out').hidden") is True


@pytest.mark.provokes_network_errors
async def test_what_is_not_allowed_is_said(replicas: Replicas, store: Store, profiles: Profiles, secret: str) -> None:
    """A colleague's run: it exists, and is not theirs to see; another tenant's does not exist."""
    service = await replicas(jwt_keys=secret, cookie=COOKIE)
    theirs = await drive.create(store, tenant="acme", initiator="ann")
    others = await drive.create(store, tenant="other", initiator="eve")
    profile = await profiles(service.base_url)
    await profile.cookie({"name": COOKIE, "value": ISSUER.token(tenant="acme", sub="bob"), "url": service.base_url})
    tab = await profile.tab(f"/#/runs/{theirs}")
    await tab.see("This run cannot be shown")
    await tab.see("forbidden", within=".note")
    await tab.goto(f"/#/runs/{others}")
    await tab.see("There is no such run")
