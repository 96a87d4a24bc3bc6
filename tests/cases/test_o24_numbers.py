"""O24: numbers and empty lists must not change on their way through Lua, Python or JSON."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import ended, post_run, snapshot
from ..support.drive import start
from ..support.factories import Workers
from ..support.service import Service

EXACT = (
    '{"n":9007199254740993,"m":9223372036854775807,"u":18446744073709551615,"b":100000000000000000000000,"f":0.1,'
    '"e":[],"o":{},"z":null,"x":-0.0,"t":"1e16","d":0.1000000000000000055511151231257827021181583404541015625,"i":15947634569000323}'
)


def exact(text: str | bytes) -> Any:
    """Parse without any rounding."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def same(left: Any, right: Any) -> bool:
    """Equal, with -0.0 and 0.0 apart, and [] and {} apart."""
    return repr(left) == repr(right)


async def test_payloads_are_carried_byte_for_byte(service: Service) -> None:
    """Live, replayed, as a page and in the snapshot: the very bytes that were appended."""
    hand = await start(service.store, "numbers")
    live = await service.follow(hand.run_id).open()
    await hand.emit(("note.made", EXACT.encode()))
    await hand.emit(("tool.requested", b'{"tool_call_id":"c","tool":"t","arguments":%b}' % EXACT.encode()))
    await hand.emit(("tool.completed", b'{"tool_call_id":"c","tool":"t","result":%b}' % EXACT.encode()))
    await hand.finish(outcome=EXACT.encode())
    await live.until_end()
    replayed = await service.follow(hand.run_id).open()
    await replayed.until_end()
    page = await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"accept": "application/json"})
    shown = await service.client.get(f"/agent-runs/{hand.run_id}")
    for text, times in ((live.stream.raw.decode(), 4), (replayed.stream.raw.decode(), 4), (page.text, 4), (shown.text, 3)):
        assert text.count(EXACT) == times


agents = Agents()


@agents.agent("echo")
async def echo(run: Run) -> Any:
    """Gives its input back, through Python."""
    await run.emit("note.made", {"input": run.input})
    return run.input


async def test_input_comes_out_as_it_went_in(service: Service, workers: Workers) -> None:
    """Run input is stored as it was sent; through a handler integers of any size and empty lists survive Python."""
    await workers(agents)
    body = '{"agent":"echo","input":' + EXACT + ',"metadata":{"big":[18446744073709551616,[]]}}'
    answer = await service.client.post("/agent-runs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["run_id"]
    await ended(service.client, run_id)
    shown = await service.client.get(f"/agent-runs/{run_id}")
    assert f'"input":{EXACT}' in shown.text
    assert '{"big":[18446744073709551616,[]]}' in shown.text
    outcome = exact(shown.text)["outcome"]
    given = exact(EXACT)
    for name in ("n", "m", "u", "b", "f", "e", "o", "z", "x", "t", "i"):
        assert same(outcome[name], given[name]), name


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1"])
async def test_what_is_not_json_is_refused(service: Service, number: str) -> None:
    """Numbers that JSON does not have are refused with a type, not rounded or guessed."""
    body = '{"agent":"echo","input":{"n":' + number + "}}"
    answer = await service.client.post("/agent-runs", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    again = await post_run(service.client, "numbers")
    assert again.status_code == 201


async def test_long_sequences_stay_plain_decimal(service: Service, admin: Admin, settings: Settings) -> None:
    """Around 10^14, where Lua's own printing becomes scientific, sequences and ids go on as integers."""
    seed = 99_999_999_999_997
    hand = await start(service.store, "huge")
    key = f"{settings.prefix}:{{{hand.run_id[4:6]}}}:run:{hand.run_id}"
    admin.hset(key, mapping={"sequence": seed, "log_from": seed + 1})
    admin.delete(f"{key}:log", f"{key}:audit")
    for n in range(5):
        assert (await hand.emit(("step.done", {"n": n}))).sequence == seed + n + 1
    follower = await service.follow(hand.run_id).open(seed)
    await follower.until(seed + 5)
    assert (await hand.finish()).sequence == seed + 6
    await follower.until_end()
    follower.check(seed + 1, seed + 6)
    assert [frame.id for frame in follower.frames] == [f"{hand.run_id}:{seed + n}" for n in range(1, 7)]
    assert (await snapshot(service.client, hand.run_id))["sequence"] == seed + 6
    stored: Any = admin.hget(key, "sequence")
    assert re.fullmatch(rb"\d+", stored)
