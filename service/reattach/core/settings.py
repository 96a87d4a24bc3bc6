"""Every setting, once: its name, default and meaning. Flags, environment variables and README's table follow from it."""

from typing import Annotated

import msgspec

Meta = msgspec.Meta


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one process runs. Each field is a flag (``--lease``) and a variable (``REATTACH_LEASE``). Durations are seconds."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(description="Port to listen on; 0 picks a free one and prints it.", ge=0, le=65535)] = 8080
    cors: Annotated[str, Meta(description="Origins of other sites' pages that may use the API, exact, comma separated; empty: none.")] = ""
    hosts: Annotated[
        str, Meta(description="Host names, comma separated, that the API answers to without authentication, besides this machine's own.")
    ] = ""
    jwt_keys: Annotated[
        str,
        Meta(
            description="What callers' tokens are checked with: an https:// URL of a JWKS, env:NAME, or a file with a JWKS, a JWK, a PEM "
            "or a secret. Without it: no authentication, this machine only."
        ),
    ] = ""
    jwt_issuer: Annotated[str, Meta(description="Issuers (iss) that tokens are taken from, comma separated; empty: any.")] = ""
    jwt_audience: Annotated[
        str, Meta(description="Audiences (aud) of which a token must name one, comma separated; empty: it must name none.")
    ] = ""
    jwt_tenant: Annotated[
        str, Meta(description="Claim with the tenant, dotted where it is nested; =NAME: the same for everybody.", min_length=1)
    ] = "tenant"
    jwt_subject: Annotated[str, Meta(description="Claim with the subject, dotted where it is nested.", min_length=1)] = "sub"
    jwt_scopes: Annotated[
        str, Meta(description="Claim with the scopes, a list or text with blanks; dotted where it is nested.", min_length=1)
    ] = "scope"
    jwt_leeway: Annotated[float, Meta(description="How far the issuer's clock may differ from this machine's.", ge=0, le=300)] = 30.0
    jwt_lifetime: Annotated[float, Meta(description="Longest time that a token may have left before it ends.", ge=1, le=366 * 86_400)] = (
        86_400.0
    )
    cookie: Annotated[
        str, Meta(description="Name of a cookie that may carry the token; empty: none.", pattern=r"^[A-Za-z0-9_.-]{0,64}$")
    ] = ""
    ticket_lifetime: Annotated[float, Meta(description="How long a ticket is good for, and what was opened with it.", ge=1, le=86_400)] = (
        900.0
    )
    policy: Annotated[
        str,
        Meta(description="Who decides what callers may: MODULE:CLASS, or an https:// address that is asked; empty: Reattach's own policy."),
    ] = ""
    policy_timeout: Annotated[float, Meta(description="Longest wait for the answer of a policy's address.", ge=0.05, le=30)] = 2.0
    policy_cache: Annotated[float, Meta(description="How long an answer of a policy's address counts.", ge=0, le=60)] = 5.0
    redis: Annotated[
        str | None,
        Meta(description="redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL. Without it: the embedded server."),
    ] = None
    data: Annotated[str, Meta(description="Folder of the embedded server.")] = "./.reattach"
    prefix: Annotated[str, Meta(description="First part of every key.", pattern="^[a-z0-9_-]{1,32}$")] = "ra"
    shards: Annotated[int, Meta(description="Number of shards; fixed by the first process that ever starts.", ge=1, le=100)] = 16
    release: Annotated[str, Meta(description="release_id of runs that name none.", pattern=r"^[!-~]{1,128}$")] = "unreleased"
    lease: Annotated[float, Meta(description="How long a worker owns a run without renewing.", ge=0.5, le=3600)] = 15.0
    concurrency: Annotated[int, Meta(description="Runs one worker works on at the same time.", ge=1, le=10_000)] = 10
    grace: Annotated[float, Meta(description="How long a stopping process may take to finish or hand over.", ge=0, le=3600)] = 10.0
    keepalive: Annotated[float, Meta(description="Longest silence on a stream before a comment is sent.", ge=0.1, le=300)] = 15.0
    stream_lifetime: Annotated[
        float, Meta(description="Longest life of one stream, jittered to 80-100 %; the client resumes.", ge=1, le=86_400)
    ] = 3600.0
    write_timeout: Annotated[float, Meta(description="How long a viewer may take nothing before it is cut.", ge=0.5, le=600)] = 20.0
    max_streams: Annotated[int, Meta(description="Streams one process serves; beyond: 503.", ge=1, le=1_000_000)] = 10_000
    tenant_streams: Annotated[
        int, Meta(description="Streams and held requests that a tenant may have open in all processes; 0: any.", ge=0)
    ] = 100_000
    subject_streams: Annotated[int, Meta(description="The same for one subject.", ge=0)] = 20_000
    tenant_runs: Annotated[int, Meta(description="Unfinished runs that a tenant may have; 0: any.", ge=0)] = 100_000
    subject_runs: Annotated[int, Meta(description="The same for one subject.", ge=0)] = 50_000
    tenant_run_rate: Annotated[int, Meta(description="Runs, and as many sessions, that a tenant may create in a minute; 0: any.", ge=0)] = (
        12_000
    )
    subject_run_rate: Annotated[int, Meta(description="The same for one subject.", ge=0)] = 6_000
    tenant_ticket_rate: Annotated[int, Meta(description="Tickets that a tenant may make in a minute; 0: any.", ge=0)] = 12_000
    subject_ticket_rate: Annotated[int, Meta(description="The same for one subject.", ge=0)] = 1_200
    tenant_agents: Annotated[int, Meta(description="Names of agents that a tenant may create runs for in an hour; 0: any.", ge=0)] = 1_000
    run_events: Annotated[int, Meta(description="Events that one run may append; 0: any.", ge=0)] = 1_000_000
    run_bytes: Annotated[int, Meta(description="Bytes of their payloads; 0: any.", ge=0)] = 1024 * 1024 * 1024
    run_event_rate: Annotated[int, Meta(description="Events that one run may append in a minute: its worker waits; 0: any.", ge=0)] = (
        600_000
    )
    run_byte_rate: Annotated[int, Meta(description="Bytes of their payloads in a minute: likewise; 0: any.", ge=0)] = 1024 * 1024 * 1024
    max_body: Annotated[int, Meta(description="Largest request body, bytes.", ge=1024, le=64 * 1024 * 1024)] = 1024 * 1024
    max_payload: Annotated[int, Meta(description="Largest event payload or input, bytes.", ge=256, le=16 * 1024 * 1024)] = 256 * 1024
    live_events: Annotated[
        int, Meta(description="Newest events of a live run that are all kept; older deltas go when a later event says their text.", ge=10)
    ] = 1000
    retain_deltas: Annotated[float, Meta(description="Delta-class events are replayable this long after the end.", ge=0.1)] = 600.0
    retain_events: Annotated[float, Meta(description="All other events are kept this long after the end.", ge=0.1)] = 7 * 86_400.0
    retain_run: Annotated[float, Meta(description="Record and terminal snapshot are kept this long after the end.", ge=0.1)] = 30 * 86_400.0
    redis_timeout: Annotated[float, Meta(description="Longest wait for one Redis answer.", ge=0.05, le=60)] = 5.0
    log_format: Annotated[
        str, Meta(description="auto (console in a terminal, JSON elsewhere), console or json.", pattern="^(auto|console|json)$")
    ] = "auto"
