"""Asking a hub: what it holds, at which commit, and who gets the token."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localinfer.errors import BadRequest, Gated, ModelNotFound, Offline
from localinfer.models import gguf
from localinfer.models.hub import DEFAULT_ENDPOINT, Found, Hub
from localinfer.models.quantizations import RepoFile
from localinfer.models.references import parse
from tests.models.hub_server import Fault, HubServer, git_id, serving, sha256
from tests.models.pulling import hub_at, noise

TOKEN = "hf_secret"


def test_a_search_finds_gguf_and_mlx_repositories_most_downloaded_first(hub: HubServer) -> None:
    hub.offer("a/qwen-GGUF", {}, downloads=5, likes=2, tags=["gguf", "license:apache-2.0"], gated="manual")
    hub.offer("mlx-community/qwen-4bit", {}, downloads=50, tags=["mlx"])
    hub.offer("a/qwen-original", {}, downloads=500, tags=["transformers"])
    hub.offer("a/llama-GGUF", {}, downloads=500)
    found = hub_at(hub).search("Qwen")
    assert [one.id for one in found] == ["mlx-community/qwen-4bit", "a/qwen-GGUF"]
    assert found[1] == Found(
        id="a/qwen-GGUF",
        format="gguf",
        downloads=5,
        likes=2,
        updated="2026-01-02T03:04:05Z",
        gated=True,
        licence="apache-2.0",
        tags=("gguf", "license:apache-2.0"),
    )
    assert len(hub_at(hub).search("qwen", 1)) == 1


def test_what_a_search_finds_is_fit_to_be_shown(hub: HubServer) -> None:
    hub.offer("a/x", {}, tags=["gguf", "\x1b[2J"], lastModified="\x1b]0;x\x07")
    hub.offer("../x", {})
    (found,) = hub_at(hub).search("x")
    assert found.tags[1].isprintable()
    assert found.updated.isprintable()


def test_a_repository_is_pinned_with_its_files_their_sizes_and_hashes(hub: HubServer) -> None:
    large, small = noise(5000), b"{}"
    files = {"m-Q4_0.gguf": large, "config.json": small, "empty.txt": b"", ".gitattributes": b"x"}
    hub.offer("owner/model", files, cardData={"license": "mit"}, tags=["gguf", "license:other"], gated="auto")
    repo = hub_at(hub).repo("owner/model")
    assert (repo.id, repo.commit, repo.revision) == ("owner/model", hub.commit, "main")
    assert (repo.licence, repo.gated, repo.page) == ("mit", True, f"{hub.url}/owner/model")
    assert repo.files == (
        RepoFile(path="m-Q4_0.gguf", size_bytes=5000, sha256=sha256(large), blob_id=git_id(large)),
        RepoFile(path="config.json", size_bytes=2, blob_id=git_id(small)),
        RepoFile(path="empty.txt", size_bytes=0, blob_id=git_id(b"")),
    )
    assert repo.refused == ()
    assert [one.name for one in repo.quantizations] == ["Q4_0"]
    assert len(hub.asked("api")) == 1


def test_our_listing_is_what_huggingface_hub_itself_reads_there(hub: HubServer) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub import RepoFile as TheirFile

    hub.offer("owner/model", {"m-Q4_0.gguf": noise(5000), "d/config.json": b"{}"})
    ours = hub_at(hub).repo("owner/model")
    theirs = HfApi(endpoint=hub.url, token=False)
    info = theirs.model_info("owner/model", files_metadata=True)
    assert info.sha == ours.commit
    tree = [one for one in theirs.list_repo_tree("owner/model", recursive=True) if isinstance(one, TheirFile)]
    assert [(one.path, one.size, one.lfs.sha256 if one.lfs else None, one.blob_id) for one in tree] == [
        (one.path, one.size_bytes, one.sha256, one.blob_id) for one in ours.files
    ]
    assert [one.id for one in theirs.list_models(search="model", filter="gguf", limit=5)] == ["owner/model"]


def test_a_reference_finds_its_quantization(hub: HubServer) -> None:
    hub.offer("a/b", {"m-Q4_0.gguf": noise(1000), "m-Q8_0.gguf": noise(2000)})
    repo = hub_at(hub).repo("a/b")
    assert [repo.find(parse(text)) for text in ("a/b:q8_0", "a/b/m-Q8_0.gguf", "a/b")] == [
        repo.quantizations[1],
        repo.quantizations[1],
        None,
    ]


def test_a_revision_is_asked_for_by_name_and_must_exist(hub: HubServer) -> None:
    hub.offer("a/b", {})
    assert hub_at(hub).repo("a/b", hub.commit).revision == hub.commit
    with pytest.raises(ModelNotFound, match="a/b at v9"):
        hub_at(hub).repo("a/b", "v9")
    with pytest.raises(BadRequest):
        hub_at(hub).repo("a/b", "../../x")


HOSTILE = [
    "../../x.gguf",
    "a\\..\\..\\x",
    "C:x.gguf",
    "CON.gguf",
    "\x1b[2Jx.gguf",
    "/etc/x.gguf",
    "d//x.gguf",
    "d/../x",
]


def test_names_that_would_leave_the_folder_or_reach_the_terminal_are_refused(hub: HubServer) -> None:
    hub.offer("a/b", {**dict.fromkeys(HOSTILE, noise(1000)), "good.gguf": noise(1000)})
    repo = hub_at(hub).repo("a/b")
    assert [file.path for file in repo.files] == ["good.gguf"]
    assert len(repo.refused) == len(HOSTILE)
    assert all(name.isprintable() for name in repo.refused)


@pytest.mark.parametrize("known", [True, False], ids=["with a token", "without"])
def test_a_model_that_is_not_there_gets_near_names(hub: HubServer, known: bool) -> None:
    hub.offer("unsloth/Qwen3-8B-GGUF", {})
    with pytest.raises(ModelNotFound) as caught:
        Hub(hub.url, TOKEN if known else None).repo("unslot/Qwen3-8B-GGUF")
    assert "unsloth/Qwen3-8B-GGUF" in caught.value.hint
    assert ("HF_TOKEN" in caught.value.hint) is not known
    assert caught.value.exit_code == 3


def test_a_gated_model_can_be_listed_and_says_where_to_accept(hub: HubServer) -> None:
    hub.offer("meta/llama", {"m-Q4_0.gguf": noise(5000)}, gated="manual")
    ours = hub_at(hub)
    repo = ours.repo("meta/llama")
    with pytest.raises(Gated) as caught:
        ours.header(repo, repo.files[0]).read(0, 10)
    assert f"{hub.url}/meta/llama" in caught.value.message
    assert "HF_TOKEN" in caught.value.hint
    assert caught.value.exit_code == 1
    with_token = Hub(hub.url, TOKEN)
    assert len(with_token.header(repo, repo.files[0]).read(0, 10)) == 10


def test_the_token_goes_to_the_hub_and_to_nobody_it_redirects_to(hub: HubServer) -> None:
    hub.offer("a/b", {"m-Q4_0.gguf": noise(5000)})
    ours = Hub(hub.url, TOKEN)
    repo = ours.repo("a/b")
    ours.header(repo, repo.files[0]).read(0, 10)
    assert {request.headers.get("authorization") for request in hub.asked("api")} == {f"Bearer {TOKEN}"}
    assert {request.headers.get("authorization") for request in hub.asked("hub")} == {f"Bearer {TOKEN}"}
    assert [request.headers.get("authorization") for request in hub.asked("cdn")] == [None]


def test_the_token_comes_back_when_a_foreign_host_redirects_to_the_hub(hub: HubServer) -> None:
    hub.offer("a/b", {})
    hub.fail("api", Fault(status=307, headers={"Location": f"{hub.cdn_url}/elsewhere"}, times=1))
    hub.fail("cdn", Fault(status=307, headers={"Location": f"{hub.url}/api/models/a/b?blobs=1"}))
    assert Hub(hub.url, TOKEN).repo("a/b").id == "a/b"
    assert [r.headers.get("authorization") for r in hub.requests] == [f"Bearer {TOKEN}", None, f"Bearer {TOKEN}"]


def test_a_renamed_repository_is_found_under_its_new_name(hub: HubServer) -> None:
    hub.offer("new/name", {})
    hub.fail("api", Fault(status=307, headers={"Location": "/api/models/new/name?blobs=true"}, times=1))
    assert hub_at(hub).repo("old/name").id == "new/name"


def test_a_mirror_gets_the_requests_for_metadata_and_for_data(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.offer("a/b", {"config.json": b"{}"})
    ours = Hub()
    repo = ours.repo("a/b")
    assert ours.header(repo, repo.files[0]).read(0, 2) == b"{}"
    assert [r.headers["authorization"] for r in hub.requests] == [f"Bearer {TOKEN}"] * 2


def test_a_saved_token_is_kept_from_a_mirror(hub: HubServer, tmp_path: Path) -> None:
    """It was made for the public hub; huggingface_hub itself would find it."""
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text(TOKEN)
    hub.offer("a/b", {})
    program = (
        "import sys; from localinfer.models.hub import Hub; from huggingface_hub import get_token;"
        "Hub(sys.argv[1]).repo('a/b'); print(get_token(), Hub()._saved_token())"
    )
    done = subprocess.run([sys.executable, "-c", program, hub.url], capture_output=True, text=True, env=os.environ)
    assert done.stdout.split() == [TOKEN, TOKEN], done.stderr
    assert "authorization" not in hub.requests[0].headers


def test_no_token_is_sent_where_the_person_forbids_it(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    hub.offer("a/b", {})
    Hub(hub.url).repo("a/b")
    assert "authorization" not in hub.requests[0].headers


def test_the_proxy_of_the_environment_is_used(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(HubServer()) as proxy:  # a proxy is asked for the whole address
        proxy.fail("api", Fault(status=418))
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with pytest.raises(Exception, match="418"):
            Hub("http://hub.invalid").repo("a/b")
        assert proxy.requests[0].path.startswith("http://hub.invalid/api/models/a/b")


@pytest.mark.parametrize("switch", ["argument", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_no_method_opens_a_socket(hub: HubServer, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    hub.offer("a/b", {"m-Q4_0.gguf": noise(5000)})
    repo = hub_at(hub).repo("a/b")
    del hub.requests[:]
    if switch != "argument":
        monkeypatch.setenv(switch, "1")
    monkeypatch.setattr("socket.socket", None)
    monkeypatch.setattr("socket.getaddrinfo", None)
    offline = Hub(hub.url, offline=switch == "argument")
    for ask in (
        lambda: offline.search("a"),
        lambda: offline.repo("a/b"),
        lambda: offline.header(repo, repo.files[0]),
        lambda: offline.remote(repo, repo.files[0]),
    ):
        with pytest.raises(Offline, match="offline"):
            ask()
    assert not hub.requests


def test_offline_huggingface_hub_is_not_even_loaded() -> None:
    program = (
        "import sys; from localinfer.models.hub import Hub; from localinfer.errors import Offline\n"
        "try: Hub(offline=True).repo('a/b')\n"
        "except Offline: print('huggingface_hub' in sys.modules, 'httpx2' in sys.modules, 'ssl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False"] * 3, done.stderr


@pytest.mark.parametrize("endpoint", ["huggingface.co", "ftp://x", "https://", "file:///etc/passwd"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(BadRequest):
        Hub(endpoint)


def test_without_anything_said_it_is_the_public_hub(hub: HubServer) -> None:
    assert Hub().endpoint == DEFAULT_ENDPOINT


def test_a_header_of_another_host_is_read_in_few_requests_and_the_hub_is_asked_once(
    hub: HubServer, starter_model: Path
) -> None:
    with starter_model.open("rb") as file:
        head = file.read(8_000_000)
    hub.offer("a/b", {"m-Q4_1.gguf": head})
    ours = hub_at(hub)
    repo = ours.repo("a/b")
    source = ours.header(repo, repo.files[0])
    source.size_bytes = starter_model.stat().st_size  # the tensors behind the header are never asked for
    header = gguf.read(source)
    with starter_model.open("rb") as file:
        assert header == gguf.read(gguf.LocalFile(file, source.name))
    assert len(hub.asked("hub")) == 1
    assert len(hub.asked("cdn")) <= 3
    assert hub.served_bytes <= 12_000_000


def test_an_address_that_expired_is_asked_for_again(hub: HubServer) -> None:
    data = noise(5000)
    hub.offer("a/b", {"m.gguf": data})
    ours = hub_at(hub)
    repo = ours.repo("a/b")
    source = ours.header(repo, repo.files[0])
    assert source.read(0, 100) == data[:100]
    hub.fail("cdn", Fault(status=403, times=1))
    assert source.read(100, 9000) == data[100:]
    assert len(hub.asked("hub")) == 2


def test_a_hub_that_ignores_ranges_is_stopped_before_it_sends_the_file(hub: HubServer) -> None:
    hub.offer("a/b", {"m.gguf": noise(30_000_000)})
    hub.fail("cdn", Fault(whole=True))
    ours = hub_at(hub)
    repo = ours.repo("a/b")
    with pytest.raises(Exception, match="only as a whole"):
        ours.header(repo, repo.files[0]).read(0, 1000)
    assert hub.served_bytes < 30_000_000
