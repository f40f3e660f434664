"""Offline means: no connection and no name looked up, by any process of ours."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import ROOT, assert_one_clear_error, run

# Every Python process that finds this module at its start writes down what it asks of the network.
WITNESS = """
import os, sys
def seen(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        if not (event == "socket.connect" and isinstance(arguments[1], (str, bytes))):  # a local socket has a path
            with open(os.environ["WITNESS"], "a") as file:
                file.write(f"{event} {arguments[1:]}\\n")
sys.addaudithook(seen)
"""


@pytest.fixture
def witness(tmp_path: Path) -> dict[str, Any]:
    """An environment in which the use of the network is written down."""
    (tmp_path / "sitecustomize.py").write_text(WITNESS)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "WITNESS": str(tmp_path / "network.log")}


def asked(witness: dict[str, Any]) -> str:
    log = Path(witness["WITNESS"])
    return log.read_text() if log.exists() else ""


def test_the_witness_sees_what_is_asked(witness: dict[str, Any]) -> None:
    run("search", "anything", HF_ENDPOINT="http://127.0.0.1:9", **witness)
    assert "socket.connect" in asked(witness)


@pytest.mark.parametrize("how", [{"LOCALINFER_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "1"}], ids=["setting", "hub's own"])
def test_offline_commands_ask_nobody(how: dict[str, Any], witness: dict[str, Any], starter_model: Path) -> None:
    folder: dict[str, Any] = {"LOCALINFER_MODEL_FOLDERS": str(starter_model.parent)}
    for arguments in (("models",), ("where",), ("fit", str(starter_model)), ("show", "qwen3.5-4b"), ("doctor",)):
        done = run(*arguments, **how, **witness, **folder)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout
    answered = run("run", str(starter_model), "Hi", "--max-tokens", "2", **how, **witness)
    assert answered.returncode == 0, answered.stderr
    for arguments in (("pull", "owner/repo"), ("pull", "qwen3.5-4b"), ("search", "x"), ("show", "owner/repo")):
        assert_one_clear_error(run(*arguments, **how, **witness), 5, "offline")
    assert asked(witness) == ""
