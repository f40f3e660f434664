"""An engine that knows the plan it was loaded by."""

from typing import TYPE_CHECKING

from localinfer.engine import WorkerEngine

if TYPE_CHECKING:
    from localinfer.placing import Placing


class Opened(WorkerEngine):
    """An engine whose memory was planned: ``placing`` is None where there was nothing to plan."""

    placing: "Placing | None" = None
