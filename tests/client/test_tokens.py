"""A page and its token: renewed when it is refused, once; and what happens when there is no better one."""

import time
from pathlib import Path

import pytest

from ..support.drive import start
from ..support.factories import Replicas
from ..support.issuer import SECRET, hs256
from ..support.service import Service
from .conftest import Pages
from .page import Refused

ISSUER = hs256()


@pytest.fixture
async def guarded(replicas: Replicas, tmp_path: Path) -> Service:
    """A replica that wants tokens."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return await replicas(jwt_keys=str(path), keepalive=0.3, jwt_leeway=0)


async def test_an_expired_token_is_renewed(guarded: Service, pages: Pages) -> None:
    """The stream ends with its token; the page asks for a new one, and goes on behind its last event."""
    hand = await start(guarded.store, initiator="ann")
    page = await pages(hand.run_id, guarded.base_url, tokens=[])
    await page.until(lambda v: v["connection"]["state"] == "connecting", "it to want a token")
    await page.act("tokens", [ISSUER.token(exp=time.time() + 1.5), ISSUER.token()])
    await page.until_state("live")
    await hand.emit(("step.done", {"n": 1}))
    await page.until(lambda v: v["connection"]["reason"] == "unauthorized", "the token to expire")
    await page.until_state("live")
    await hand.finish()
    await page.until_state("ended")
    view = await page.view()
    assert view["applied"] == {f"{hand.run_id}:{n}": 1 for n in (3, 4)}
    assert view["counters"] == {"events": 2, "resumes": 1, "duplicates": 0, "gaps": 0}
    assert view["asked"].count(True) == 1


async def test_a_refused_token_is_renewed_once(guarded: Service, pages: Pages) -> None:
    """401 is met by one new token; if that is no better the page says so and asks no more, until somebody tells it to."""
    hand = await start(guarded.store, initiator="ann")
    bad = ISSUER.token(exp=time.time() - 3600)
    page = await pages(hand.run_id, guarded.base_url, tokens=[bad, bad, ISSUER.token()])
    await page.until(lambda v: v["connection"]["state"] == "refused" and not v["loading"], "it to give up")
    view = await page.view()
    assert view["error"]["code"] == view["connection"]["error"]["code"] == "unauthenticated"
    assert view["run"] is None and view["asked"] == [False, True]
    await page.act("reload")
    await page.until_state("live")
    assert (await page.view())["error"] is None


async def test_somebody_elses_run(guarded: Service, pages: Pages) -> None:
    """403 is not met by a new token: nothing would change."""
    hand = await start(guarded.store, initiator="bob")
    page = await pages(hand.run_id, guarded.base_url, tokens=[ISSUER.token()])
    await page.until(lambda v: v["connection"]["state"] == "refused" and not v["loading"], "it to give up")
    view = await page.view()
    assert view["error"]["code"] == "forbidden" and view["asked"] == [False]


async def test_commands_renew_it_too(guarded: Service, pages: Pages) -> None:
    """A command that meets 401 is sent again with the new token: one run."""
    page = await pages("run_00000000000000000000000000", guarded.base_url, tokens=[ISSUER.token(exp=time.time() - 3600), ISSUER.token()])
    await page.until_state("refused")
    run = await page.act("start", [{"agent": "idle", "input": {}}, {}])
    assert (run["state"], run["initiator"]) == ("queued", "ann")
    with pytest.raises(Refused) as refused:
        await page.act("start", [{"agent": "Not A Name", "input": {}}, {}])
    assert (refused.value.about["code"], refused.value.about["status"]) == ("invalid_request", 422)


async def test_a_ticket_is_enough_to_look(guarded: Service, pages: Pages) -> None:
    """Without a token, a ticket for the run follows it to its end."""
    hand = await start(guarded.store, initiator="ann")
    headers = {"authorization": f"Bearer {ISSUER.token()}"}
    made = await guarded.client.post(f"/agent-runs/{hand.run_id}/tickets", json={}, headers=headers)
    assert made.status_code == 201
    page = await pages(hand.run_id, guarded.base_url, tickets=[made.json()["ticket"]])
    await page.until_state("live")
    await hand.finish()
    await page.until_state("ended")
    assert (await page.view())["run"]["state"] == "succeeded"
