"""The claims are asserted in modules of their own: pytest tells of them as of tests."""

import pytest

pytest.register_assert_rewrite(
    "tests.cases.claims_limit", "tests.cases.claims_continuation", "tests.cases.claims_order"
)
