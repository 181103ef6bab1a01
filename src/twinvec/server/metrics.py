"""What the server counts, for Prometheus. No text, key or model content is ever part of it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from twinvec.server.models import Models

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

SECONDS = 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60


class Metrics:
    """Counts of one server."""

    def __init__(self, models: Models) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("dialect", "path", "status")
        self._requests = Counter("twinvec_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "twinvec_request_seconds", "Time to answer a request.", ("path",), registry=registry, buckets=SECONDS
        )
        self._note_cache: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        for name, text, read in (
            ("twinvec_queued_texts", "Texts that wait for a batch.", lambda: models.batcher.n_waiting),
            ("twinvec_loaded_models", "Models in memory.", models.count_loaded),
        ):
            Gauge(name, text, registry=registry).set_function(read)

    def note(self, dialect: str, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        key = dialect, path, status
        found = self._note_cache.get(key)
        if found is None:
            found = self._requests.labels(dialect, path, str(status)), self._seconds.labels(path)
            self._note_cache[key] = found
        found[0].inc()
        found[1].observe(seconds)

    def render(self) -> bytes:
        """All counts in the format of Prometheus."""
        return generate_latest(self.registry)
