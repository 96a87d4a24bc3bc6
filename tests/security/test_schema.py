"""The served OpenAPI document is kept by the service, whatever is sent: checked by schemathesis, with a real token."""

import asyncio
import os
import sys
from pathlib import Path

from ..support.factories import Replicas
from ..support.issuer import SECRET, hs256
from ..support.processes import ROOT
from ..support.scale import rounds

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


async def test_whatever_is_sent_is_answered_as_documented(replicas: Replicas, tmp_path: Path) -> None:
    """No 5xx and no answer that the document does not describe; the same requests every time."""
    (tmp_path / "secret").write_text(SECRET)
    service = await replicas(jwt_keys=str(tmp_path / "secret"))
    token = hs256().token(tenant="acme", sub="ann", scope="*")
    command = [
        "-m", "schemathesis.cli", "run", f"{service.base_url}/openapi.json", "--header", f"Authorization: Bearer {token}",
        "--checks", CHECKS, "--phases", "fuzzing", "--max-examples", str(rounds(8)), "--seed", "1", "--workers", "1",
        "--request-timeout", "10", "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.security.schema_hooks", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()[-8000:]
