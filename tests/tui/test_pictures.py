"""The pictures of the README are there, small, and load nothing from anywhere."""

import re

import pytest

from tests.tui.pictures import FOLDER, MOST_BYTES


@pytest.mark.parametrize("name", ["chat", "models", "first-start"])
def test_a_picture_stands_alone(name: str) -> None:
    path = FOLDER / f"{name}.svg"
    assert path.stat().st_size < MOST_BYTES
    svg = path.read_text("utf-8")
    assert not re.search(r"@font-face|@import|url\(\s*['\"]?\w+:|href=|<script|<image", svg)
    assert "localinfer" in svg
