"""edges.py STORE.json EXPECTED BY [more]: are the orders in a store those that a program expects?

STORE.json is ptdump --json of a store, EXPECTED has lines "RANK NUMBER RANK NUMBER": that
I/O (the write at that place of the rank's file) comes before the other.  Whatever follows
from the one must follow from the other, with the order of each node's own I/O: so what a
reduction has left out is no difference.  With `more` there may be more of them.  BY are
those who have found them, with commas.
"""
import json
import sys
from collections import defaultdict


def load_store(path):
    """The I/O of each node, and the edges, as (rank, number); by whom they were found."""
    store = json.load(open(path))
    events, edges, barriers, by = {}, [], defaultdict(list), defaultdict(int)
    for node in store["nodes"]:
        for event in node["events"]:
            events[node["node"], event["event"]] = event
            for wait in event.get("waits", []):
                edges.append(((wait["node"], wait["event"]), (node["node"], event["event"])))
                by[wait["by"]] += 1
            if "barrier" in event:
                barriers[event["barrier"]].append((node["node"], event["event"]))
                by[event["barrier_by"]] += 1
    for members in barriers.values():
        edges += [((a[0], a[1] - 1), b) for a in members for b in members if a != b]
    return events, edges, by


def order_of(events, edges):
    """All pairs (a, b) of events where a comes before b on another node."""
    before = defaultdict(set)
    for a, b in edges:
        before[b].add(a)
    memo = {}

    def clock(event):
        stack = [event]
        while stack:
            top = stack[-1]
            node, number = top
            need = list(before[top]) + ([(node, number - 1)] if number else [])
            missing = [e for e in need if e not in memo]
            if missing:
                stack += missing
                continue
            merged = {}
            for e in need:
                for n, k in memo[e].items():
                    merged[n] = max(merged.get(n, -1), k)
                merged[e[0]] = max(merged.get(e[0], -1), e[1])
            memo[top] = merged
            stack.pop()
        return memo[event]

    return {event: clock(event) for event in events}


def main():
    events, edges, by = load_store(sys.argv[1])
    number, where = {}, {}
    for (node, index), event in events.items():
        if event["call"] == "pwrite":
            key = int(node.split(".")[0]), event["off"]
            number[node, index] = key
            where[key] = node, index
    wanted = []
    for line in open(sys.argv[2]):
        a, k, b, l = map(int, line.split())
        wanted.append((where[a, k], where[b, l]))
    exactly = sys.argv[4:] != ["more"]
    got, want = order_of(events, edges), order_of(events, wanted)
    wrong = 0
    for event in sorted(events, key=lambda e: number.get(e, (99, 0))[::-1]):
        if event not in number:
            continue
        for node in {n for n, _ in events} - {event[0]}:
            # the last numbered I/O of that node that must come before
            def last(clock):
                k = clock[event].get(node, -1)
                while k >= 0 and (node, k) not in number:
                    k -= 1
                return number.get((node, k))

            if last(got) != last(want) and (exactly or (last(got) or (0, -1)) < (last(want) or (0, -1))):
                wrong += 1
                if wrong <= 40:
                    print(f"{number[event]} waits on node {node} for {last(got)}, not {last(want)}")
    print(f"{len(number)} I/Os, {len(wanted)} orders expected, {len(edges)} edges, by {dict(by)}")
    if not wanted or wrong:
        sys.exit(f"{wrong} differences")
    if set(by) != set(sys.argv[3].split(",")):
        sys.exit(f"edges by {dict(by)}, not {sys.argv[3]}")


main()
