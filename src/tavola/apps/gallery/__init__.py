"""Gallery: small sample designs, each with sample items and demonstrations of its access patterns.

One module per design defines a `SAMPLE`: its tables, its items, and demonstrations that run on any connection and return results
with their cost. The other applications do not depend on the gallery.
"""

from tavola.apps.gallery.demonstrations import Demonstration, Sample, StepResult
from tavola.apps.gallery.samples import SAMPLES, load_samples

__all__ = ["SAMPLES", "Demonstration", "Sample", "StepResult", "load_samples"]
