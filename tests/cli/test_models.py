"""The commands about models, run as a person runs them, against a real hub on this machine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from localinfer.models.catalog import catalog
from tests.cli.commands import assert_one_clear_error, run
from tests.models.hub_server import Fault, HubServer
from tests.tiny_models import write_tiny_model

REPO = "owner/tiny-GGUF"


@pytest.fixture
def hub(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """The local hub with a real model in two quantizations, and an empty cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    data = write_tiny_model(tmp_path, "llama").read_bytes()
    hub.offer(REPO, {"tiny-Q4_K_M.gguf": data, "tiny-Q8_0.gguf": data, "README.md": b"# tiny"})
    return hub


def plan_of(*arguments: str) -> dict[str, Any]:
    done = run("fit", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    plan: dict[str, Any] = json.loads(done.stdout)["plan"]
    return plan


# What is here and what fits


def test_the_list_for_programs_names_every_model_with_its_plan(starter_model: Path, home: Path) -> None:
    done = run("models", "--json", "--all", LOCALINFER_MODEL_FOLDERS=str(starter_model.parent))

    listed = json.loads(done.stdout)
    names = {entry["name"] for entry in listed}
    assert {model.id for model in catalog().models if model.chat} <= names
    for entry in listed:
        plan = entry["plan"]
        assert plan["verdict"] in ("full", "full_short_ctx", "moe_offload", "partial", "cpu", "too_big", "unknown")
        assert plan["total_bytes"] == sum(term["size_bytes"] for term in plan["terms"])
        assert plan["sentence"].endswith(".")
    (here,) = [entry for entry in listed if entry["here"]]
    assert here["name"] == "smollm2-135m"
    assert here["paths"] == [str(starter_model)]
    assert home.exists()


@pytest.mark.parametrize("width", [80, 100])
def test_the_list_for_people_fits_the_terminal(width: int) -> None:
    done = run("models", "--all", COLUMNS=str(width))

    assert done.returncode == 0, done.stderr
    assert all(len(line) <= width for line in done.stdout.splitlines())
    assert "On this machine\n  nothing yet" in done.stdout
    assert "qwen3.5-4b" in done.stdout


def test_only_what_fits(home: Path) -> None:
    listed = json.loads(run("models", "--json", "--all", "--fits").stdout)
    assert listed
    assert all(entry["plan"]["verdict"] != "too_big" for entry in listed)
    assert home.exists()


def test_a_listing_asks_the_library_once_and_is_quick_after_that(home: Path) -> None:
    run("models")
    kept = {path.name for path in (home / "state").iterdir()}
    assert any(name.startswith("build-") for name in kept)
    assert "bandwidth.json" in kept


# From the hub to an answer


def test_search_show_fit_pull_run_and_rm(hub: HubServer, tmp_path: Path) -> None:
    found = run("search", "tiny")
    assert REPO in found.stdout

    shown = run("show", REPO, COLUMNS="80")
    assert shown.returncode == 0, shown.stderr
    assert "llama, 4 layers" in shown.stdout
    assert all(quantization in shown.stdout for quantization in ("Q4_K_M", "Q8_0"))
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    before = plan_of(f"{REPO}:Q4_K_M", "--context", "1024")
    assert "oracle" in {term["source"] for term in before["terms"]}
    assert not list((tmp_path / "cache").rglob("*.gguf")), "sizing fetched the model"

    pulled = run("pull", f"{REPO}:Q4_K_M")
    assert pulled.returncode == 0, pulled.stderr
    path = Path(pulled.stdout.strip().rpartition(": ")[2])
    assert path.read_bytes() == hub.repos[REPO]["tiny-Q4_K_M.gguf"]
    assert run("where", f"{REPO}:Q4_K_M").stdout.strip() == str(path)
    assert f"{REPO}" in run("models").stdout
    after = plan_of(f"{REPO}:Q4_K_M", "--context", "1024")
    assert after["terms"] == before["terms"]

    answered = run("run", f"{REPO}:Q4_K_M", "Hello", "--max-tokens", "4", "--offline")
    assert answered.returncode == 0, answered.stderr
    asked = len(hub.requests)
    assert "is here" in run("pull", f"{REPO}:Q4_K_M").stdout
    assert len(hub.requests) == asked, "what is here was asked for again"

    assert_one_clear_error(run("rm", f"{REPO}:Q4_K_M"), 2, "--yes")
    assert path.exists()
    removed = run("rm", f"{REPO}:Q4_K_M", "--yes")
    assert "free again" in removed.stdout
    assert not path.exists()
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file() and file.stat().st_size > 1000]


def test_a_repository_without_a_quantization_brings_the_one_that_suits(hub: HubServer) -> None:
    pulled = run("pull", REPO)

    assert pulled.returncode == 0, pulled.stderr
    assert f"{REPO}:Q4_K_M is here" in pulled.stdout
    served = [request.path for request in hub.asked("cdn")]
    assert served


def test_a_model_of_the_catalogue_comes_from_its_repository(hub: HubServer) -> None:
    spec = catalog().find("qwen3-0.6b")
    variant = spec.quantizations[0]
    data = hub.repos[REPO]["tiny-Q4_K_M.gguf"]
    hub.offer(variant.repo, {variant.file.replace("*", "Qwen3-0.6B-"): data})

    pulled = run("pull", spec.id)

    assert pulled.returncode == 0, pulled.stderr
    listed = [entry for entry in json.loads(run("models", "--json").stdout) if entry["here"]]
    assert [Path(path).read_bytes() for entry in listed for path in entry["paths"]] == [data]


def test_what_others_have_fetched_is_not_deleted(hub: HubServer, tmp_path: Path) -> None:
    theirs = tmp_path / "cache" / "models--someone--theirs" / "snapshots" / ("a" * 40) / "theirs-Q4_0.gguf"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(hub.repos[REPO]["tiny-Q4_K_M.gguf"])

    assert_one_clear_error(run("rm", "someone/theirs:Q4_0", "--yes"), 2, "did not fetch", "Hugging Face cache")
    assert theirs.exists()


# What can go wrong


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "no-such-model"), 3, ("no model", "no-such-model")),
        (("fit", "qwen3.5-4b:Q9_9"), 3, ("no quantization", "Q4_K_M")),
        (("pull", "owner/tiny-GGUF:Q2_K"), 3, ("Q2_K", "Q4_K_M")),
        (("pull", "owner/missing"), 3, ("owner/missing",)),
        (("pull", "a/b/../../c.gguf"), 2, ("may not be written",)),
        (("rm", "smollm2-135m", "--yes"), 3, ("not on this machine",)),
        (("where", "qwen3.5-4b"), 3, ("not on this machine", "pull")),
        (("fit", "smollm2-135m", "--kv", "q5"), 2, ("q5",)),
        (("fit", "smollm2-135m", "--device", "CUDA7"), 2, ("CUDA7", "cpu")),
        (("search", "nothing-like-it"), 3, ("nothing-like-it",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("hub")
def test_a_mistake_is_one_line_and_a_hint(arguments: tuple[str, ...], code: int, words: tuple[str, ...]) -> None:
    assert_one_clear_error(run(*arguments), code, *words)


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (Fault(status=403, headers={"X-Error-Code": "GatedRepo"}), 1, ("terms",)),
        (Fault(status=401), 1, ("strangers",)),
        (Fault(status=500), 1, ("500",)),
        (Fault(status=302, headers={"Location": "/api/models/owner/tiny-GGUF?blobs=true"}), 1, ()),
    ],
    ids=["gated", "unknown to the public", "broken", "a loop"],
)
def test_a_hub_that_misbehaves_is_one_line(
    hub: HubServer, fault: Fault, code: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    hub.fail("api", fault)

    assert_one_clear_error(run("pull", REPO, timeout_s=60), code, *words)
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_offline_nothing_is_asked(hub: HubServer) -> None:
    for arguments in (("pull", REPO), ("show", REPO), ("search", "tiny"), ("fit", REPO)):
        assert_one_clear_error(run(*arguments, "--offline"), 5, "offline")
    assert_one_clear_error(run("pull", REPO, HF_HUB_OFFLINE="1"), 5, "offline")
    assert run("models", LOCALINFER_OFFLINE="1").returncode == 0
    assert not hub.requests


def test_names_from_the_hub_cannot_command_the_terminal(hub: HubServer) -> None:
    hub.offer("owner/evil", {"evil\x1b]0;pwned\x07-Q4_0.gguf": b"x" * 2000}, license="\x1b[31mred")

    for arguments in (("search", "evil"), ("show", "owner/evil"), ("pull", "owner/evil")):
        done = run(*arguments)
        assert "\x1b" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_is_no_model_is_refused_before_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<html>")
    assert_one_clear_error(run("fit", str(path)), 1, "web page")
    assert_one_clear_error(run("show", str(path)), 1, "web page")


# Loading by the plan


def test_a_context_that_cannot_be_had_is_refused_and_the_possible_one_named(starter_model: Path) -> None:
    done = run("run", str(starter_model), "Hello", "--context", "9000000")
    assert_one_clear_error(done, 4, "does not fit")
    named = re.search(r"Ask for ([\d,]+) or fewer", done.stderr)
    assert named is not None
    assert int(named[1].replace(",", "")) <= 8192  # what it was trained for


def test_a_load_teaches_the_next_plan(starter_model: Path, home: Path) -> None:
    before = plan_of(str(starter_model))
    done = run("run", str(starter_model), "Tell me a story.", "--max-tokens", "48", "--temperature", "0")
    assert done.returncode == 0, done.stderr

    after = plan_of(str(starter_model))
    (overhead,) = [term for term in after["terms"] if term["kind"] == "overhead"]
    assert overhead["source"] == "measured"
    assert {term["kind"]: term["source"] for term in before["terms"]}["overhead"] == "formula"
    assert (home / "state" / "lessons.json").exists()


# One choice for all commands


def test_every_command_means_the_same_quantization(home: Path) -> None:
    """What the list offers is what is planned, what is fetched, and what is said offline."""
    offered = {entry["name"]: entry for entry in json.loads(run("models", "--json").stdout)}
    for spec in (catalog().find("qwen3.5-4b"), catalog().find("lfm2.5-8b-a1b"), catalog().find("qwen3-8b")):
        (entry,) = [entry for name, entry in offered.items() if name.split(":")[0] == spec.id]
        planned = json.loads(run("fit", spec.id, "--json").stdout)
        assert planned["size_bytes"] == entry["size_bytes"]
        refused = run("pull", spec.id, "--offline").stderr
        assert f"{entry['size_bytes'] / 1e6:,.0f} MB" in refused
    assert home.exists()


def test_models_for_another_engine_are_not_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--owner--some-mlx-4bit" / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama", "quantization": {"bits": 4}}')
    (folder / "model.safetensors").write_bytes(bytes(100))

    listed = {entry["name"]: entry for entry in json.loads(run("models", "--json", "--all").stdout)}
    mine = listed["owner/some-mlx-4bit"]
    assert (mine["plan"], "Apple Silicon" in mine["error"]) == (None, True)
    assert all(entry["format"] == "gguf" for entry in listed.values() if not entry["here"])
    assert_one_clear_error(run("fit", "qwen3.5-4b:4bit"), 3, "no quantization")


def test_the_list_obeys_the_settings() -> None:
    listed = json.loads(run("models", "--json", LOCALINFER_CONTEXT="1024", LOCALINFER_KV_TYPE="q8_0").stdout)
    assert {(entry["plan"]["context"], entry["plan"]["kv_type"]) for entry in listed} == {(1024, "q8_0")}
    assert_one_clear_error(run("models", "--kv", "zz"), 2, "zz", "q8_0")


def test_a_damaged_file_that_we_fetched_is_fetched_again(hub: HubServer) -> None:
    reference = f"{REPO}:Q4_K_M"
    path = Path(run("pull", reference).stdout.strip().rpartition(": ")[2])
    with path.resolve().open("r+b") as file:
        file.truncate(path.stat().st_size // 2)

    again = run("pull", reference)

    assert again.returncode == 0, again.stderr
    assert "It is fetched again" in again.stderr
    assert path.read_bytes() == hub.repos[REPO]["tiny-Q4_K_M.gguf"]


def test_a_mirror_that_ignores_ranges_still_gives_whole_files(hub: HubServer) -> None:
    data = hub.repos[REPO]["tiny-Q4_K_M.gguf"]
    hub.offer("owner/one-GGUF", {"one-Q4_K_M.gguf": data})
    hub.fail("cdn", Fault(whole=True))
    for repo in ("owner/one-GGUF", REPO):
        done = run("pull", repo)
        assert done.returncode == 0, done.stderr
