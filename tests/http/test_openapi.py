"""The OpenAPI document: valid, complete, with examples that are what they say."""

import json
import re
from typing import Any

import jsonschema
import msgspec
import pytest
from openapi_spec_validator import validate

from reattach.http.openapi import build, errors_of
from reattach.http.routes import TABLE

from ..support.service import Service

DOCUMENT: dict[str, Any] = json.loads(msgspec.json.encode(build(TABLE)))
OPERATIONS = [(path, method, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()]


def conforms(value: Any, schema: dict[str, Any]) -> None:
    """Check a value against a schema of the document."""
    # The whole document as the root, so that references into it are found; it has no keyword of its own at the top.
    validator: Any = jsonschema.Draft202012Validator({**DOCUMENT, **schema})
    validator.validate(value)


def test_it_is_valid() -> None:
    """By the specification's own validator."""
    validate(DOCUMENT)
    assert DOCUMENT["openapi"] == "3.1.0"


def test_everything_that_is_served_is_in_it() -> None:
    """Route by route, with unique names."""
    assert {(path, method) for path, method, _ in OPERATIONS} == {(e.path, e.method.lower()) for e in TABLE}
    assert len({operation["operationId"] for _, _, operation in OPERATIONS}) == len(TABLE)


def test_every_answer_and_refusal_is_in_it() -> None:
    """With a real example of every code."""
    for endpoint in TABLE:
        responses = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        assert {str(status) for status in endpoint.answers} <= set(responses)
        for error in errors_of(endpoint):
            content = responses[str(error.status)]["content"]["application/problem+json"]
            conforms(content["examples"][error.code]["value"], content["schema"])


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_examples_are_what_they_say(path: str, method: str, operation: dict[str, Any]) -> None:
    """Bodies, answers and parameters conform to their own schemas."""
    contents = [operation.get("requestBody", {}).get("content", {}), *(r.get("content", {}) for r in operation["responses"].values())]
    for content in contents:
        for media, facts in content.items():
            if media == "application/json" and facts["schema"] != {"type": "object"}:
                conforms(facts["example"], facts["schema"])
    for parameter in operation["parameters"]:
        for value in [parameter["example"]] if "example" in parameter else parameter["schema"].get("examples", []):
            conforms(value, parameter["schema"])
    assert set(re.findall(r"{(\w+)}", path)) == {p["name"] for p in operation["parameters"] if p["in"] == "path"}


async def test_real_answers_conform(service: Service) -> None:
    """What the service says is what the document says."""

    def schema(path: str, method: str, status: int) -> dict[str, Any]:
        return DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]

    body = DOCUMENT["paths"]["/agent-runs"]["post"]["requestBody"]["content"]["application/json"]["example"]
    created = await service.client.post("/agent-runs", json=body)
    conforms(created.json(), schema("/agent-runs", "post", 201))
    run = created.headers["location"]
    for path, template in [(run, "/agent-runs/{run_id}"), (f"{run}/events?limit=100", "/agent-runs/{run_id}/events")]:
        conforms((await service.client.get(path)).json(), schema(template, "get", 200))
    conforms((await service.client.post(f"{run}/cancel")).json(), schema("/agent-runs/{run_id}/cancel", "post", 200))
    for path in ("/agent-runs", "/limits", "/healthz", "/readyz"):
        conforms((await service.client.get(path)).json(), schema(path, "get", 200))
    assert (await service.client.get("/openapi.json")).json() == DOCUMENT
