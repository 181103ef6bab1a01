"""Broken requests never make the server fail: no 5xx, no crash, no hang. scripts/fuzz_server.py sends many more."""

from __future__ import annotations

import random
from collections import Counter

from server_fuzz import http_request, status_of

REQUESTS = 600


def test_no_broken_request_makes_the_server_fail(server):
    rng = random.Random(20)
    statuses = Counter()
    for number in range(REQUESTS):
        content = http_request(rng)
        status = status_of(server.port, content)
        assert status < 500, (number, content[:500])
        statuses[status] += 1
    assert statuses[200] and statuses[400] and statuses[422]
    assert server.get("/health").status == 200
    assert not any("Traceback" in line for line in server.log), server.log[-20:]
