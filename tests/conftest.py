"""What every test shares: how hard Hypothesis tries."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: two cores that also run something else would make a slow example look like a defect.
settings.register_profile("suite", max_examples=60, deadline=None, print_blob=True)
settings.register_profile(
    "campaign",
    max_examples=20_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
