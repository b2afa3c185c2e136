"""Several coordinators of one store, and a cluster of three servers."""

import json
import time

from restate_lab import FULL, Server, check_kills, check_started_once, fail, free_ports, setup_starts, starts


class Node(Server):
    """One of three servers of a cluster."""

    def __init__(self, name, number, ports):
        super().__init__(f"{name}/node{number}")
        self.number, self.ports = number, ports
        self.node = ports[number - 1]

    def settings(self):
        return super().settings() | {
            "RESTATE_CLUSTER_NAME": "test",
            "RESTATE_NODE_NAME": f"n{self.number}",
            "RESTATE_FORCE_NODE_ID": str(self.number),
            "RESTATE_AUTO_PROVISION": "true" if self.number == 1 else "false",
            "RESTATE_DEFAULT_REPLICATION": "2",
            "RESTATE_METADATA_CLIENT__ADDRESSES": json.dumps([f"http://127.0.0.1:{port}" for port in self.ports]),
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "256MB",
        }


class Cluster:
    """Three servers; the coordinator and the workers know the first."""

    def __init__(self, name):
        ports = free_ports(3)
        self.nodes = [Node(name, number, ports) for number in (1, 2, 3)]
        self.ingress, self.admin = self.nodes[0].ingress, self.nodes[0].admin

    def start(self):
        for node in self.nodes:
            node.begin()
        end = time.monotonic() + 90
        while not all(node.is_healthy() for node in self.nodes):
            if time.monotonic() > end:
                fail("the cluster does not start: " + (self.nodes[0].dir / "log").read_text()[-2000:])
            time.sleep(0.2)

    def end(self):
        for node in self.nodes:
            node.end()


def test_cluster():
    """A killed node of three: others lead its partitions, and calls are joined."""
    kills = 20 if FULL else 1
    count = 40 + 130 * kills
    lab = setup_starts("cluster", count, 0.5, False, server=Cluster("cluster"))
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    done = 0
    while done < kills and run.poll() is None:
        time.sleep(2)
        node = lab.server.nodes[1 + done % 2]
        node.kill()
        done += 1
        if done < kills:
            time.sleep(3)
            node.begin()
    out, err = run.communicate(timeout=600)
    undone = lab.coordinator.undone()
    check_kills("cluster", done, kills)
    check_started_once(lab, "cluster")
    if run.returncode or undone:
        fail(f"cluster: exit {run.returncode}, {undone[:5]}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {done} kills of a node, {count} tasks done, 0 started twice")


def test_two_coordinators():
    """Two runs on one store share its tasks: each starts once."""
    count = 1000 if FULL else 200
    lab = setup_starts("two", count, 0.05, False, slots=8)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    if code:
        fail(f"apply: {err}")
    runs = [lab.coordinator.begin("run-all-ready", *lab.coordinator.engine()) for _ in range(2)]
    said = [run.communicate(timeout=300) for run in runs]
    undone = lab.coordinator.undone()
    check_started_once(lab, "two coordinators")
    if undone or len(starts(lab.project)) != count or any(run.returncode for run in runs):
        fail(f"two coordinators: {undone[:5]}, {len(starts(lab.project))} starts\n{said}")
    lab.close()
    print(f"  2 runs, {count} tasks: {count} starts")
