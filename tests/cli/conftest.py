"""Fixtures of other folders that the tests of the commands use too."""

from tests.gpu_build.conftest import libraries, machine, site
from tests.models.conftest import hub

__all__ = ["hub", "libraries", "machine", "site"]
