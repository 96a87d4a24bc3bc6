"""O28: whoever learns an id of another tenant has learned nothing: no endpoint tells it from one that does not exist.

That no credential, key or payload gets into a log is checked after every test, with every secret that was sent (`tests/support/secrecy`).
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from reattach.http.routes import TABLE
from reattach.http.service import Endpoint
from reattach.store import Store

from ..security.test_matrix import BODY
from ..support.drive import Hand, claim
from ..support.factories import Replicas
from ..support.issuer import SECRET, hs256
from ..support.service import Service

KEY: Final = "the-key-of-ann-for-order-17"
SESSION: Final = "conversation-of-ann"
SECRET_TEXT: Final = "card 4711 of Ann, which is for nobody's eyes"
ISSUER: Final = hs256()
_IDS: Final = re.compile(r"[A-Za-z0-9_.:-]{6,}")
ABOUT_ONE = [endpoint for endpoint in TABLE if "{" in endpoint.path]


def bearer(tenant: str, subject: str, *scopes: str) -> dict[str, str]:
    """Valid credentials."""
    return {"authorization": f"Bearer {ISSUER.token(tenant=tenant, sub=subject, scope=' '.join(scopes))}"}


ANN = ("acme", "ann")
PEOPLE: Final = {"another tenant": ("evil", "ann", "*", "admin", "read:acme"), "a colleague": ("acme", "bob")}


@pytest.fixture
async def service(replicas: Replicas, tmp_path: Path) -> Service:
    """A replica that wants tokens."""
    (tmp_path / "secret").write_text(SECRET)
    return await replicas(jwt_keys=str(tmp_path / "secret"))


async def work_of_ann(service: Service, store: Store) -> tuple[Hand, set[str], str]:
    """A run with everything in it that has an id; all texts that look like one, in frames and headers; a genuine old cursor."""
    body = {"agent": "support", "input": {"text": SECRET_TEXT}, "session_id": SESSION}
    made = await service.client.post("/agent-runs", json=body, headers={**bearer(*ANN), "idempotency-key": KEY})
    assert made.status_code == 201
    hand = await claim(store)
    await hand.emit(("message.started", {"message_id": "msg_of_ann", "role": "assistant"}), ("step.done", {"text": SECRET_TEXT}))
    path = f"/agent-runs/{hand.run_id}"
    ticket = await service.client.post(f"{path}/tickets", json={}, headers=bearer(*ANN))
    seen = [made.text, json.dumps(dict(made.headers)), ticket.text]
    for address, accept in (
        (path, "application/json"),
        (f"{path}/events", "application/json"),
        (f"/sessions/{SESSION}", "application/json"),
    ):
        answer = await service.client.get(address, headers={**bearer(*ANN), "accept": accept})
        assert answer.status_code == 200
        seen += [answer.text, json.dumps(dict(answer.headers))]
    # Plain words are names of members, headers and states: the same for everybody.
    ids = {text for text in _IDS.findall("\n".join(seen)) if re.search(r"[0-9_:-]", text) and re.search(r"[a-z]", text)}
    return hand, ids, f"{hand.run_id}:2"


def told(answer: httpx.Response) -> tuple[Any, ...]:
    """All that an answer tells. It repeats nothing of what was asked for."""
    return answer.status_code, sorted((name, value) for name, value in answer.headers.items() if name != "date"), answer.text


async def ask(service: Service, endpoint: Endpoint, one: str, who: dict[str, str], **headers: str) -> httpx.Response:
    """One request about something that has this id."""
    path = re.sub(r"\{\w+\}", lambda _: one, endpoint.path)
    return await service.client.request(endpoint.method, path, json=BODY.get(endpoint.name), headers={**who, **headers})


async def test_every_id_of_a_stranger_leads_nowhere(service: Service, store: Store) -> None:
    """Every id in any frame or header of one tenant, on every endpoint: for another tenant the same answer as for an id nobody has."""
    hand, ids, cursor = await work_of_ann(service, store)
    assert {hand.run_id, SESSION, cursor, "msg_of_ann"} <= ids
    eve = bearer(*PEOPLE["another tenant"])
    before = (await store.runs.load(hand.run_id)).sequence
    for endpoint in ABOUT_ONE:
        nobodys = "run_" + "0" * 26 if "{run_id}" in endpoint.path else "nobodys-session"
        expected = told(await ask(service, endpoint, nobodys, eve))
        assert expected[0] == 404 and SECRET_TEXT not in expected[2]
        for one in sorted(ids):
            assert told(await ask(service, endpoint, one, eve)) == expected, (endpoint.name, one)
        for sent in (cursor, "2", f"ses_{'0' * 26}:1"):
            for accept in ("text/event-stream", "application/json"):
                theirs = await ask(service, endpoint, hand.run_id, eve, **{"last-event-id": sent, "accept": accept})
                assert theirs.status_code == 404, (endpoint.name, sent)
    assert (await store.runs.load(hand.run_id)).sequence == before, "her run was touched"
    await hand.finish()


async def test_somebody_elses_key_finds_nothing(service: Service, store: Store) -> None:
    """A key belongs to one tenant and initiator: with another's credentials the same key and body make a run of their own."""
    hand, _, _ = await work_of_ann(service, store)
    body = {"agent": "support", "input": {"text": SECRET_TEXT}}
    for who in PEOPLE.values():
        made = await service.client.post("/agent-runs", json=body, headers={**bearer(*who), "idempotency-key": KEY})
        assert made.status_code == 201
        assert made.json()["run_id"] != hand.run_id
        assert hand.run_id not in made.text
        await store.runs.cancel(made.json()["run_id"], by="test", reason=None, key=None, fingerprint="")
    await hand.finish()


async def test_a_colleague_is_told_no_and_nothing_else(service: Service, store: Store) -> None:
    """Of the same tenant, without a scope: refused on every endpoint, and no answer holds anything of the run."""
    hand, _, cursor = await work_of_ann(service, store)
    bob = bearer(*PEOPLE["a colleague"])
    for endpoint in ABOUT_ONE:
        answer = await ask(service, endpoint, SESSION if "{session_id}" in endpoint.path else hand.run_id, bob, **{"last-event-id": cursor})
        assert answer.status_code == 403, endpoint.name
        assert SECRET_TEXT not in answer.text and "msg_of_ann" not in answer.text
    listed = await service.client.get("/agent-runs", headers=bob)
    assert listed.json()["runs"] == []
    sessions = await service.client.get("/sessions", headers=bob)
    assert sessions.json()["sessions"] == []
    await hand.finish()
