#!/usr/bin/env python3
"""For gpu.sh: what it makes of coldbench's records.

gpu_records.py line RECORD KEY=VALUE...   a comparison as one line, without its samples
gpu_records.py summary DIR [PART...]      markdown tables of what DIR has

Status: 0, 2 usage, 5 something cannot be read: it is named, and left out.
"""
import contextlib
import io
import json
import math
import os
import statistics
import sys

DECISIONS = "tie slower faster inconclusive incomparable unstable wrong failed".split()
UNREADABLE = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
STRIDES = (128, 144, 256, 272, 512, 528)


# ---- a comparison as one line ----

def theta(samples, orders):
    """Of A and its second copy, as coldbench has it: by who ran first. None: only one of them ever did."""
    early, late = [], []
    for ns, who in zip(samples, orders):
        (early if who.index(0) < who.index(1) else late).append(math.log(ns[1] / ns[0]))
    return (statistics.median(early) + statistics.median(late)) / 2 if early and late else None


def line(path, facts):
    """theta_noise: half of what every other block of a round says more than the blocks between. Its mean
    square is the variance that a round's theta has from its blocks alone."""
    with open(path) as file:
        record = json.load(file)
    out = {key: int(value) if value.isdigit() else value for key, value in (f.split("=", 1) for f in facts)}
    for result in record["results"]:
        samples, orders = result.pop("samples_ns"), result.pop("order")
        halves = [(theta(s[0::2], o[0::2]), theta(s[1::2], o[1::2])) for s, o in zip(samples, orders)]
        result["theta_noise"] = [None if None in h else (h[0] - h[1]) / 2 for h in halves]
        for round_ in result["covariates"]:
            del round_["block_involuntary"]
    out["record"] = record
    print(json.dumps(out, separators=(",", ":")))


# ---- tables ----

def quantile(values, q):
    values = sorted(values)
    return values[max(int(q * len(values) + 0.5), 1) - 1] if values else math.nan


def cell(values, q, form):
    return format(quantile(values, q), form) if values else "-"


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def interval(figure, scale=1, digits=0):
    if not figure or figure["mid"] is None:
        return "-"
    mid, lo, hi = (f"{figure[k] / scale:.{digits}f}" if figure[k] is not None else "-" for k in ("mid", "lo", "hi"))
    return f"{mid} [{lo}, {hi}]"


def grouped(entries, key):
    groups = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def result_of(entry):
    return entry["record"]["results"][0] if "record" in entry else None


def decision_of(entry):
    """Its status tells a side that was wrong or impossible, which the decision alone does not; with one that is
    no answer's, what the record says is not one either."""
    result = result_of(entry)
    return {0: result["decision"], 4: result["decision"], 1: "wrong"}.get(entry["status"], "failed") if result else "failed"


def series(entries):
    rows = []
    for item, some in grouped(entries, lambda e: e["item"]).items():
        found = [decision_of(e) for e in some]
        results = [r for r in map(result_of, some) if r]
        seen = [100 * (r["ratio"]["mid"] - 1) for r in results if r["ratio"] and r["ratio"]["mid"] is not None]
        total, measure = [e["wall_ms"] / 1000 for e in some], [r["measure_s"] for r in results]
        rows.append([item, len(some), ", ".join(f"{found.count(d)} {d}" for d in DECISIONS if d in found),
                     cell(seen, 0.5, "+.3f")] + [cell(total, q, ".2f") for q in (0.5, 0.9, 1)] +
                    [cell(measure, q, ".3f") for q in (0.5, 0.9)] + [sum(m <= 1 for m in measure)])
    table(["item", "n", "decisions", "seen, %", "total s: median", "90 %", "largest", "measuring s: median", "90 %",
           "within 1 s"], rows)
    found = [decision_of(e) for e in entries]
    print(f"{len(found)} comparisons: {found.count('slower') + found.count('faster')} called different, "
          f"{found.count('tie')} tie ({100 * found.count('tie') / len(found):.1f} %); median total "
          f"{quantile([e['wall_ms'] / 1000 for e in entries], 0.5):.2f} s\n")


def blocks_for(margin, noise2, own2, blocks):
    """Six rounds of three identical copies are a tie in 97 % of comparisons where the sd of theta(A, A2) is
    a third of the margin, in 87 % where it is 1/2.5 (20,000 simulated, rank rule of 0009, normal thetas)."""
    room = (margin / 3) ** 2 - own2
    return math.ceil(blocks * noise2 / room) if room > 0 else "more rounds"


def processes(entries):
    rows = []
    for item, some in grouped(entries, lambda e: e["item"]).items():
        results = [r for r in map(result_of, some) if r]
        both = [(t["theta_aa2"], noise) for r in results for t, noise in zip(r["thetas"], r["theta_noise"])
                if t["theta_aa2"] is not None and noise is not None]
        if not both:
            continue
        rounds = [c for r in results for c in r["covariates"]]
        blocks = sum(r["blocks"] for r in results) / len(rounds)
        all2, noise2 = (sum(x * x for x in values) / len(both) for values in zip(*both))
        error = 2 * math.sqrt(2 / len(both) * (all2 ** 2 + noise2 ** 2))
        own2 = max(all2 - noise2, 0)
        block_us = 1e6 * sum(c["measure_s"] for c in rounds) / len(rounds) / blocks
        start_ms = 1000 * statistics.median(c["startup_s"] for c in rounds)
        rows.append([item, len(both), f"{blocks:.0f}"] +
                    [f"{100 * math.sqrt(x):.3f}" for x in (all2, noise2, own2, own2 + error)] +
                    [f"{start_ms:.0f}", f"{block_us:.0f}", "x".join(map(str, rounds[-1]["slot"])),
                     ", ".join(str(blocks_for(m, noise2, own2, blocks)) for m in (0.02, 0.01, 0.005)),
                     f"{1000 * start_ms / block_us:.0f}"])
    table(["item", "rounds", "blocks each", "sd of theta(A, A2), %", "by blocks alone, %", "processes, %", "at most, %",
           "start-up of a round, ms", "a block, us", "readings x repeats x batch",
           "blocks for a tie in 6 rounds at 2 %, 1 %, 0.5 %", "blocks that last as long as the start-up"], rows)


def probe(named):
    cells = {}
    for column, (_, d) in enumerate(named):
        m, widest, of = d["model"], 0, {}

        def put(row, text):
            cells.setdefault(row, ["-"] * len(named))[column] = text

        put("began, wall", f"{d['started']}, {d['startup_s'] + d['measure_s']:.0f} s")
        for mix, f in m["ceilings"].items():
            put(f"{mix} ceiling, GB/s", interval(f))
            if f and f["mid"]:
                widest = max(widest, (f["hi"] - f["lo"]) / f["mid"])
        put("widest spread of a ceiling", f"{100 * widest:.1f} %")
        for kind in ("knees", "starts"):
            for k in m[kind]:
                of[kind, k["curve"]] = of.get((kind, k["curve"]), 0) + 1
                put(f"{'knee' if kind == 'knees' else 'plateau starts'} {of[kind, k['curve']]} of {k['curve']}, MiB",
                    f"{k['lo_bytes'] / 2**20:.3g} to {k['hi_bytes'] / 2**20:.3g}")
        for f in m["floors"]:
            put(f"floor, {f['submit']}, us", interval(f["ns"], 1000, 2))
        for f in m["compute"]:
            put(f"{f['type']}, T(FL)OP/s", interval(f["gflop_per_s"], 1000))
        for (path, width), points in grouped(m.get("scratch", []), lambda s: (s["path"], s["width"])).items():
            best = max(s["gb_per_s"]["mid"] for s in points)
            put(f"{path}, {width} B a lane: stride: times the best one's",
                ", ".join(f"{s['stride']}: {best / s['gb_per_s']['mid']:.2f}" for s in points if s["stride"] in STRIDES))
        put("controls that failed", ", ".join(c["name"] for c in d["checks"] if c["status"] == "fail") or "none")
    table([""] + [name for name, _ in named], [[row] + c for row, c in cells.items()])


def fit(points):
    """T = a + V/b by least squares of the relative misfit: a, 1/b, and the worst misfit."""
    w = [(1 / t ** 2, v, t) for v, t in points]
    s0, s1, s2 = (sum(x * v ** k for x, v, _ in w) for k in (0, 1, 2))
    t0, t1 = (sum(x * v ** k * t for x, v, t in w) for k in (0, 1))
    slope = (s0 * t1 - s1 * t0) / (s0 * s2 - s1 * s1)
    a = (t0 - slope * s1) / s0
    return a, slope, max(abs((a + slope * v) / t - 1) for v, t in points)


def run(named):
    results = [r for _, d in named for r in d["results"]]
    rows = []
    for key, some in grouped(results, lambda r: (r["variant"], "x".join(map(str, r["shape"].values())),
                                                 f"[{r['cache']}] {r['submit']}")).items():
        rows.append(list(key) + ["<br>".join(interval(r[what], scale, digits) for r in some) for what, scale, digits in
                                 (("time_ns", 1000, 2), ("of_twin", 1, 3), ("gb_per_s", 1, 0))] +
                    ["<br>".join(r["verdict"] for r in some)])
    table(["variant", "shape", "state", "us", "of twin", "GB/s", "verdict"], rows)
    rows = []
    for key, some in grouped([r for r in results if r["submit"] == "batched" and r["time_ns"]["mid"]],
                             lambda r: (r["params"].get("act"), r["params"].get("tokens"), r["cache"])).items():
        points = [(r["bytes_read"] + r["bytes_written"], r["time_ns"]["mid"]) for r in some]
        if len({v for v, _ in points}) > 1:
            a, slope, off = fit(points)
            rows.append(list(key) + [f"{a / 1000:.2f}", f"{1 / slope:.0f}", f"{100 * off:.1f}", len(points)])
    print("T = a + V/b, batched:\n")
    table(["act", "tokens", "state", "a, us", "b, GB/s", "worst misfit, %", "points"], rows)


def dobench(entries):
    rows = []
    for op, some in list(grouped(entries, lambda e: e["op"]).items()) + [("**all**", entries)]:
        ratios = [e["ratio"] for e in some]
        rows.append([op, len(some), sum(not 1 / 1.01 <= r <= 1.01 for r in ratios),
                     f"{min(ratios):.3f} to {max(ratios):.3f}"])
    table(["do_bench, called twice", "pairs", "off by more than 1 %", "ratios"], rows)


def sanitize(entries):
    table(["tool", "codes", "number of them", "errors or hazards", "status"],
          [[e["tool"], e["item"], len(e["variants"].split()), e["found"], e["status"]] for e in entries])


# ---- what DIR has ----

class Folder:
    """Its records, each with its place; what cannot be read is told in a line, and left out."""

    def __init__(self, path):
        self.path, self.status, self.told = path, 0, set()

    def fault(self, place, error):
        self.status = 5
        if place not in self.told:
            print(f"gpu_records: {place}: {words_of(error)}", file=sys.stderr)
        self.told.add(place)

    def parsed(self, place, text):
        try:
            record = json.loads(text)
            if not isinstance(record, dict):
                raise ValueError("not a record")
            return [record]
        except ValueError as error:
            self.fault(place, error)
            return []

    def lines(self, name):
        path = os.path.join(self.path, name)
        if not os.path.exists(path):
            return []
        with open(path, errors="replace") as file:  # the last line of a part that was killed may be torn
            whole = [(f"{path}:{n}", text) for n, text in enumerate(file, 1) if text.endswith("\n")]
        return [(place, entry) for place, text in whole for entry in self.parsed(place, text)]

    def records(self, kind):
        found = []
        for name in sorted(os.listdir(self.path)):
            if name.startswith(kind + "-") and name.endswith(".json"):
                path = os.path.join(self.path, name)
                with open(path, errors="replace") as file:
                    found += [(path, (name[:-5], record)) for record in self.parsed(path, file.read())]
        return found

    def shown_alone(self, show, place, entry):
        """What lacks something is found by itself, so that the others are shown."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                show([entry])
            return True
        except UNREADABLE as error:
            self.fault(place, error)
            return False


def words_of(error):
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


PARTS = {"probe": (probe, Folder.records, "probe"), "run": (run, Folder.records, "run"),
         "aa": (series, Folder.lines, "aa.jsonl"), "processes": (processes, Folder.lines, "aa.jsonl"),
         "planted": (series, Folder.lines, "planted.jsonl"), "dobench": (dobench, Folder.lines, "dobench.jsonl"),
         "sanitize": (sanitize, Folder.lines, "sanitize.jsonl")}


def summary(path, parts):
    folder = Folder(path)
    for part in parts or PARTS:
        show, read, name = PARTS[part]
        entries = [entry for place, entry in read(folder, name) if folder.shown_alone(show, place, entry)]
        print(f"## {part}\n")
        if entries:
            show(entries)
        else:
            print("Nothing of it is here.\n")
    return folder.status


def main(arguments):
    verb, path, *rest = arguments + [""] * (2 - len(arguments))
    try:
        if verb == "line" and path and all("=" in fact for fact in rest):
            line(path, rest)
            return 0
        if verb == "summary" and path and all(part in PARTS for part in rest):
            return summary(path, rest)
    except UNREADABLE as error:
        print(f"gpu_records: {path}: {words_of(error)}", file=sys.stderr)
        return 5
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
