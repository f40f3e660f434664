"""Deleting a model from the screen of models: whose it is, what is asked, what went."""

from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from localinfer.errors import BadRequest
from tui.aside import aside
from tui.screens.confirm import Confirm
from tui.widgets.models.lines import Line

if TYPE_CHECKING:
    from localinfer.advice import Advice
    from localinfer.downloads import Download, Downloads


async def remove(
    screen: Screen[Any],
    line: Line,
    variant: int,
    download: "Download | None",
    advice: "Advice | None",
    downloads: "Downloads",
) -> str:
    """Delete the files of a model, or what a download that is over has left, after asking: what to tell the person,
    nothing if nothing went. Raises ``LocalInferError`` where it is not ours to delete."""
    from localinfer import removal
    from localinfer.models.explain import download_size

    entry = line.variants[variant].entry if line.variants else None
    if download is not None and download.state != "done":
        repo = entry.variant.repo if entry is not None and entry.variant is not None else download.reference
        left = None if downloads.active else await aside(lambda: removal.leftovers(repo))
        if left is not None:
            size = download_size(left.size_bytes)
            if not await _agreed(screen, f"Delete what has arrived of {download.title}?", f"{size} become free."):
                return ""
            await aside(lambda: removal.clear(left))
        downloads.forget(download.reference)
        return f"{download.title} is off the list."
    if entry is None or not entry.here or advice is None:
        return ""
    found = next((model for model in advice.survey.models if model.paths == entry.paths), None)
    if found is None:
        raise BadRequest(f"{entry.title} is not there any more.", "Look again.")
    removal.check(found)
    size = download_size(found.size_bytes)
    if not await _agreed(screen, f"Delete {found.name}?", f"{size} in {found.paths[0].parent} become free."):
        return ""
    freed = await aside(lambda: removal.delete(found))
    return f"{found.name} is deleted; {download_size(freed)} are free again."


async def _agreed(screen: Screen[Any], title: str, text: str) -> bool:
    question: Screen[bool] = Confirm(title, text, "Delete", "Keep")
    agreed: bool = await screen.app.push_screen_wait(question)
    return agreed
