"""Gallery: the documents' sample designs, each a small declared model with items and its access patterns.

One module a design. Each has a `SAMPLE`: its tables, its items, and demonstrations that run on any connection and tell what they
found and what it took. Knows the public names and the shell of the pages; nothing here is needed by the other applications.
"""

from tavola.apps.gallery.samples import SAMPLES, load_samples
from tavola.apps.gallery.showing import Demonstration, Sample, Told

__all__ = ["SAMPLES", "Demonstration", "Sample", "Told", "load_samples"]
