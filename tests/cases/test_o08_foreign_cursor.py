"""O08: a cursor of another run is refused, whoever's run it is, and delivers nothing of either."""

import httpx

from ..support.calls import check_problem
from ..support.drive import create, start
from ..support.service import Service


async def refused(service: Service, run_id: str, cursor: str, status: int, code: str) -> httpx.Response:
    """Ask with a cursor, as header and as query, as stream and as page: always the same refusal."""
    answers: list[httpx.Response] = []
    for accept in ("text/event-stream", "application/json"):
        for headers, params in (({"last-event-id": cursor}, {}), ({}, {"after": cursor})):
            url = f"/agent-runs/{run_id}/events"
            answers.append(await service.client.get(url, headers={"accept": accept, **headers}, params=params))
    for answer in answers:
        check_problem(answer, status, code)
        assert "event:" not in answer.text and "data:" not in answer.text
    return answers[0]


def told(response: httpx.Response, *names: str) -> str:
    """An answer without the ids that were in the question."""
    text = response.text
    for name in names:
        text = text.replace(name, "…")
    return text


async def test_a_cursor_of_another_run_is_a_typed_mismatch(service: Service) -> None:
    """Same tenant, other tenant, no such run: one answer that tells them not apart; the run's own cursor works as before."""
    a, b = await start(service.store, "a"), await start(service.store, "b")
    await a.emit_many(3)
    await b.emit_many(6)
    foreign = await create(service.store, "c", tenant="another")
    answers = [
        await refused(service, b.run_id, f"{other}:3", 400, "cursor_run_mismatch") for other in (a.run_id, foreign, f"{a.run_id[:-4]}zzzz")
    ]
    assert len({told(answer, a.run_id, b.run_id, foreign) for answer in answers}) == 1
    await refused(service, b.run_id, f"{b.run_id}:9", 416, "future_cursor")
    follower = await service.follow(b.run_id).open(f"{b.run_id}:3")
    await b.finish()
    assert await follower.until_end() == "clean"
    follower.check(4, 9)
    await a.finish()


async def test_a_future_cursor_says_where_the_run_is(service: Service) -> None:
    """The refusal carries what a client needs to go on."""
    hand = await start(service.store, "b")
    problem = check_problem(await refused(service, hand.run_id, "77", 416, "future_cursor"), 416, "future_cursor")
    assert (problem["latest_sequence"], problem["state"]) == (2, "running")
    assert (await service.client.get(problem["snapshot"])).json()["sequence"] == 2
    await hand.finish()
