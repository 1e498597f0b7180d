"""What all tests of the command share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def runtime_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where servers keep the tokens that they make: one folder per test, so that no test finds another's."""
    folder = tmp_path_factory.mktemp("runtime")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder
