"""A bulk job on a real Ray cluster of several node processes: one is killed while it embeds, another while it searches.

    python bulk_ray.py SOURCE MODEL LOCAL TARGET

LOCAL is a folder that the same job wrote without Ray. Prints the outcome as a line of JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import numpy as np
import psutil
import ray
from ray._private import ray_constants
from ray.cluster_utils import Cluster

from bulk_fakes import content
from twinvec.bulk import BulkSettings, RayWorkers, embed_bulk, open_bulk, pairs_of_shards, search_shards
from twinvec.bulk import ray as ray_workers
from twinvec.bulk import search as bulk_search
from twinvec.embedder import ModelEmbedder

MEMORY = 80 << 20
NODE = {"num_cpus": 1, "object_store_memory": MEMORY}
PATIENCE_S = 120


class Killer(logging.Handler):
    """Kills a node while its actor is working, and keeps the log messages."""

    def __init__(self, cluster, nodes):
        super().__init__()
        self.cluster, self.nodes = cluster, {node.node_id: node for node in nodes}
        self.crew, self.killed, self.messages = None, None, []

    def emit(self, record):
        self.messages.append(record.getMessage())

    def watch(self, state):
        if self.killed or not self.crew or not state.n_embedded:
            return
        starting = [actor.start for actor in self.crew._actors if actor.start is not None]
        if starting:  # so that one machine does not do all the work
            ray.wait(starting, num_returns=len(starting), timeout=120)
        for actor in self.crew._actors:
            if actor.node in self.nodes and actor.start is None and actor.shards and self.kill(actor):
                self.killed = actor.node
                return

    def kill(self, actor):
        """Suspend the worker of a node; if it is in the middle of a shard, kill it and the node, else resume it."""
        node = self.nodes[actor.node]
        workers = workers_of(node)
        assert workers
        for worker in workers:
            worker.suspend()
        _, unfinished = ray.wait(list(actor.shards), num_returns=len(actor.shards), timeout=0.5)
        if not unfinished:
            for worker in workers:
                worker.resume()
            return False
        end(self.cluster, node, workers)
        return True


def workers_of(node):
    """The worker processes of a node."""
    raylet = node.all_processes[ray_constants.PROCESS_TYPE_RAYLET][0].process.pid
    return [each for each in psutil.Process(raylet).children() if each.name().startswith("ray::")]


def end(cluster, node, workers):
    """Kill a node and its workers."""
    cluster.remove_node(node, allow_graceful=False)
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.kill()


def search_while_a_node_dies(cluster, node, folder, queries):
    """The hits, and the number of shards that were started more than once because the node was killed.

    No shard is searched before the node is dead, so the node is always in the middle of one.
    """
    find, marks = bulk_search._hits, Path(mkdtemp(dir=os.environ["TMPDIR"]))
    dead = marks / "dead"

    def find_later(question, part):
        (marks / f"{part.path.name}-{os.getpid()}-{uuid4().hex}").touch()
        end_s = time.monotonic() + PATIENCE_S
        while not dead.exists() and time.monotonic() < end_s:
            time.sleep(0.05)
        return find(question, part)

    def kill():
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            working = [each for each in workers_of(node) if any(marks.glob(f"*-{each.pid}-*"))]
            if working:
                end(cluster, node, working)
                break
            time.sleep(0.05)
        dead.touch()

    bulk_search._hits = find_later
    try:
        with ThreadPoolExecutor(1) as pool:
            killed = pool.submit(kill)
            hits = search_shards(folder, queries, k=5, ray=cluster.address)
            killed.result()
    finally:
        bulk_search._hits = find
    starts = Counter(mark.name.rsplit("-", 2)[0] for mark in marks.glob("*-*"))
    return hits, sum(count > 1 for count in starts.values())


def main(source, model, local, target):
    cluster = Cluster(initialize_head=True, connect=False, head_node_args={**NODE, "include_dashboard": False})
    try:
        killer = Killer(cluster, [cluster.add_node(**NODE, wait=False) for _ in range(2)])
        cluster.wait_for_nodes(timeout=120)
        ray_workers.logger.addHandler(killer)
        hire = ray_workers._Crew._hire

        def watched_hire(crew):
            killer.crew = crew
            hire(crew)

        ray_workers._Crew._hire = watched_hire
        chosen = ModelEmbedder(model)
        embed_bulk(
            source,
            target,
            chosen,
            settings=BulkSettings(shard_rows=100),
            workers=RayWorkers(chosen, cluster.address),
            watch=killer.watch,
        )
        queries = open_bulk(local).take([0, 7])[1]
        here = search_shards(local, queries, k=5)
        other = next(node for name, node in killer.nodes.items() if name != killer.killed)
        there, n_again = search_while_a_node_dies(cluster, other, local, queries)
        pairs = [pairs_of_shards(local, k=20, ray=address) for address in (None, cluster.address)]
        result = {
            "killed": killer.killed is not None,
            "searched_again": n_again,
            "messages": killer.messages,
            "same_bytes": content(Path(local)) == content(Path(target)),
            "same_hits": bool(np.array_equal(here.ids, there.ids) and np.array_equal(here.scores, there.scores)),
            "same_pairs": all(np.array_equal(a, b) for a, b in zip(*pairs, strict=True)),
        }
        print(json.dumps(result))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
