#!/usr/bin/env python3
"""Compares the order that a store holds with the true one.

    compare.py [--period P] [--least] [--no-exit] TRUTH DUMP

TRUTH is what a truth program prints with --edges, DUMP the output of `ptdump --json` on
the store.  Both orders are closed: program order and everything that follows from the
edges.  Then they must be equal.

With a period P only the events 0, P, 2P, ... of a node are held.  So the store must hold
all true orders with such a source, hence for each true order a:i -> b:j one with
i - P < i' <= i, and what follows from them, and nothing else.

--least: the true edges are those that hold however the program's races end; the run had
one end, so more may have been found.

Orders on an event `exit` are listed apart: they are about how a program ends, not about
its I/O; --no-exit leaves them out.  No output and exit status 0 if all is well.
"""
import argparse
import json
import re
import sys


class Order:
    """What must be done before each event: `last[b, j][a]` is the last such event of a."""

    def __init__(self, counts, edges):
        self.counts = counts
        self.last = {(node, event): {} for node, n in counts.items() for event in range(n)}
        for (a, i), to in edges:
            row = self.last[to]
            row[a] = max(row.get(a, -1), i)
        self.close()

    def close(self):
        changed = True
        while changed:
            changed = False
            for (b, j), row in self.last.items():
                before = [(b, j - 1)] if j else []
                before += [(a, i) for a, i in row.items()]
                for event in before:
                    for a, i in self.last[event].items():
                        if a != b and row.get(a, -1) < i:
                            row[a] = i
                            changed = True
                        if a == b and i >= j:
                            sys.exit("the order has a cycle at %s:%d" % (b, j))

    def edges(self):
        return [((a, i), to) for to, row in self.last.items() for a, i in row.items()]

    def is_exit(self, event):
        return event[1] == self.counts[event[0]] - 1


def read_truth(path):
    counts, edges = {}, []
    for line in open(path):
        if match := re.fullmatch(r"node (\S+) (\d+)\n", line):
            counts[match[1]] = int(match[2])
        elif match := re.fullmatch(r"(\S+):(\d+) -> (\S+):(\d+)\n", line):
            edges.append(((match[1], int(match[2])), (match[3], int(match[4]))))
        else:
            sys.exit("what does '%s' mean?" % line.rstrip())
    return counts, edges


def read_dump(path):
    counts, edges, barriers = {}, [], {}
    for node in json.load(open(path))["nodes"]:
        name = node["node"]
        counts[name] = node["count"]
        for event in node["events"]:
            here = (name, event["event"])
            edges += [((w["node"], w["event"]), here) for w in event.get("waits", [])]
            if "barrier" in event:
                barriers.setdefault(event["barrier"], []).append(here)
    for members in barriers.values():
        edges += [((a, i - 1), (b, j)) for a, i in members for b, j in members if a != b and i]
    return counts, edges


def at_period(order, period):
    """What holds of every `period`th event reveal."""
    edges = [((a, i - i % period), to) for (a, i), to in order.edges()]
    return Order(order.counts, edges)


def differences(have, other):
    """Orders of `have` that are not in `other`; what program order implies is left out."""
    for (b, j), row in have.last.items():
        for a, i in sorted(row.items()):
            if other.last[b, j].get(a, -1) >= i:
                continue
            if j and have.last[b, j - 1].get(a, -1) == i and other.last[b, j - 1].get(a, -1) < i:
                continue
            yield (a, i), (b, j)


def show(what, edges, order):
    for kind in ("", " (exit)"):
        some = ["%s:%d -> %s:%d" % (*a, *b) for a, b in edges
                if order.is_exit(b) == bool(kind)]
        if some:
            more = ", ... (%d)" % len(some) if len(some) > 6 else ""
            print("%s%s: %s%s" % (what, kind, ", ".join(some[:6]), more))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--period", type=int, default=1)
    parser.add_argument("--least", action="store_true")
    parser.add_argument("--no-exit", action="store_true")
    parser.add_argument("truth")
    parser.add_argument("dump")
    args = parser.parse_args()

    true_counts, true_edges = read_truth(args.truth)
    counts, found_edges = read_dump(args.dump)
    if counts != true_counts:
        print("events: %s, and not %s" % (counts, true_counts))
        return 1
    true = Order(counts, true_edges)
    found = Order(counts, found_edges)
    missing = list(differences(at_period(true, args.period), found))
    extra = [] if args.least else list(differences(found, true))
    if not args.least and not extra:
        extra = list(differences(found, at_period(true, args.period)))
    if args.no_exit:
        missing = [edge for edge in missing if not true.is_exit(edge[1])]
        extra = [edge for edge in extra if not true.is_exit(edge[1])]
    show("missing", missing, true)
    show("extra", extra, true)
    return 1 if missing or extra else 0


if __name__ == "__main__":
    sys.exit(main())
