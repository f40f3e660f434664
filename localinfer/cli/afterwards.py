"""What is said and learnt after a reply: its line of figures, and where the model really runs."""

from localinfer.cli import console, figures
from localinfer.engines import Opened
from localinfer.placing import judge, learn
from localinfer.types import Metrics, ModelInfo


def notices(model: ModelInfo | None) -> tuple[str, ...]:
    """What the person should know of how the model was loaded."""
    if model is None:
        return ()
    return (*model.notices, model.no_draft) if model.no_draft else model.notices


def line(engine: Opened, metrics: Metrics, *, asked: bool = False) -> str:
    """The line of figures of a reply; ``asked`` is as in ``figures.line``. What the reply teaches about this machine is
    kept; what is wrong is said in red."""
    status = engine.status()
    if engine.placing is None:
        return figures.line(metrics, status, asked=asked)
    judged = judge(engine.placing, status, metrics)
    if judged.problem:
        console.warn(judged.problem)
    learn(engine.placing, status, metrics)
    return figures.line(metrics, status, judged.text, asked=asked)
