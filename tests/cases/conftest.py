"""The claims are asserted in modules of their own: pytest tells of them as of tests."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(*[f"tests.cases.{path.stem}" for path in Path(__file__).parent.glob("claims_*.py")])
