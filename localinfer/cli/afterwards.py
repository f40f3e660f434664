"""What is said and learnt after a reply: its line of figures, and where the model really runs."""

from localinfer.cli import console, figures
from localinfer.engines import Opened
from localinfer.placing import judge, learn
from localinfer.types import Metrics


def line(engine: Opened, metrics: Metrics) -> str:
    """The line of figures of a reply. What it teaches about this machine is kept; what is wrong is said in red."""
    status = engine.status()
    if engine.placing is None:
        return figures.line(metrics, status)
    judged = judge(engine.placing, status, metrics)
    if judged.problem:
        console.warn(judged.problem)
    learn(engine.placing, status, metrics)
    return figures.line(metrics, status, judged.text)
