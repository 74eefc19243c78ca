"""Results of the library as dataclasses. `json` holds the whole document (docs/json.md); notebooks show tables."""

import html
from dataclasses import dataclass, field

GIB = 2.0**30
AXES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")


def _table(titles, rows):
    """A table of HTML; cells are escaped."""
    def cells(tag, row):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"
    return ("<table><thead>" + cells("th", titles) + "</thead><tbody>" + "".join(cells("td", row) for row in rows)
            + "</tbody></table>")


def _mesh(plan):
    """The axes of a plan above 1 as text: "pp 2 x tp 8"."""
    return " x ".join(f"{a['axis']} {a['size']}" for a in plan["mesh"] if a["size"] > 1) or "1 GPU"


@dataclass
class Model:
    """Parameters and FLOP of a model."""

    json: dict = field(repr=False)

    @property
    def name(self):
        return self.json["name"]

    @property
    def params(self):
        """Number of parameters by part, "total" and "active" among them."""
        return self.json["params"]

    def _repr_html_(self):
        return _table(["part of " + self.name, "parameters"], self.params.items())


@dataclass
class Prediction:
    """What a step of a plan takes. Times in seconds, memory in bytes."""

    json: dict = field(repr=False)
    step_s: float = 0.0
    step_s_low: float = None  #: ends of the 90 % interval; None: no errors are known
    step_s_high: float = None
    tokens_per_s: float = 0.0
    mfu_frac: float = 0.0
    compute_s: float = 0.0
    exposed_comm_s: float = 0.0
    bubble_s: float = 0.0
    optimizer_s: float = 0.0
    fits: bool = True
    peak_bytes: float = 0.0
    plan: dict = field(default=None, repr=False)

    def __init__(self, json, plan=None):
        self.json = json
        for name in ("step_s", "step_s_low", "step_s_high", "tokens_per_s", "mfu_frac", "compute_s", "exposed_comm_s",
                     "bubble_s", "optimizer_s"):
            setattr(self, name, json[name])
        self.fits = json["memory"]["fits"]
        self.peak_bytes = json["memory"]["peak_bytes"]
        self.plan = plan or json["plan"]

    @property
    def mesh(self):
        """The axes above 1 as text: "pp 2 x tp 8"."""
        return _mesh(self.plan)

    def parts(self):
        """Where the step goes: seconds by name."""
        return {"compute": self.compute_s, "exposed communication": self.exposed_comm_s, "bubble": self.bubble_s,
                "optimizer": self.optimizer_s}

    def _repr_html_(self):
        bar = "".join(
            f"<rect x='{300 * start / self.step_s:.1f}' width='{300 * length / self.step_s:.1f}' height='16' "
            f"fill='{colour}'><title>{name} {length:.4g} s</title></rect>"
            for (name, length), start, colour in _stacked(self.parts()))
        rows = [("step", f"{self.step_s:.4g} s")]
        rows += [(name, f"{length:.4g} s, {length / self.step_s:.1%}") for name, length in self.parts().items()]
        rows += [("MFU", f"{self.mfu_frac:.1%}"),
                 ("peak memory", f"{self.peak_bytes / GIB:.1f} GiB{'' if self.fits else ', does not fit'}")]
        return f"<p>{html.escape(self.mesh)}</p><svg width='300' height='16'>{bar}</svg>" + _table(["", ""], rows)


def _stacked(parts):
    """Parts with where they start, if one follows another, and their colours."""
    colours, start = ("#4878a8", "#c85a4b", "#b8b8b8", "#8a9a5b"), 0.0
    for (name, length), colour in zip(parts.items(), colours):
        yield (name, length), start, colour
        start += length


@dataclass
class Search:
    """The plans that a search lists, best first, with its certificate."""

    json: dict = field(repr=False)

    @property
    def plans(self):
        """A Prediction of each plan. Empty for a search of several stacks, which lists `stacks`."""
        return [Prediction(row["prediction"], row["plan"]) for row in self.json.get("plans", [])]

    @property
    def stacks(self):
        """What each of several stacks has found, as dicts; [] for a search of one."""
        return self.json.get("stacks", [])

    @property
    def best(self):
        """The plan to take; None: there is none."""
        return self.plans[0] if self.plans else None

    @property
    def optimal(self):
        """Whether no plan of the space is faster, by proof."""
        return self.json["certificate"]["optimal"]

    def rows(self):
        """A dict of plain values for each plan, as pandas.DataFrame takes them."""
        return [{"step_s": p.step_s, "mfu_frac": p.mfu_frac, "peak_gib": p.peak_bytes / GIB,
                 **{axis["axis"]: axis["size"] for axis in p.plan["mesh"]},
                 "schedule": p.plan["pipeline"]["schedule"], "zero": p.plan["sharding"]["zero"]} for p in self.plans]

    def _repr_html_(self):
        rows = self.rows()
        titles = ["step (s)", "MFU (%)", "peak (GiB)", *AXES, "schedule", "zero"]
        return _table(titles, [[f"{r['step_s']:.4g}", f"{100 * r['mfu_frac']:.1f}", f"{r['peak_gib']:.1f}",
                                *(r[axis] for axis in AXES), r["schedule"], r["zero"]] for r in rows])


@dataclass
class Simulation:
    """The step of a plan, task by task."""

    json: dict = field(repr=False)

    @property
    def step_s(self):
        return self.json["step_s"]

    @property
    def ranks(self):
        """Times and peak of each simulated rank, as dicts."""
        return self.json["ranks"]


@dataclass
class Explanation:
    """Why a plan costs what it does."""

    json: dict = field(repr=False)


@dataclass
class Comparison:
    """The best plans of several searches, by name."""

    searches: dict

    def rows(self):
        """A dict of plain values for each search, as pandas.DataFrame takes them."""
        return [{"name": name, "mesh": s.best.mesh, **s.rows()[0]} for name, s in self.searches.items() if s.best]

    def _repr_html_(self):
        return _table(["", "step (s)", "MFU (%)", "mesh"],
                      [[r["name"], f"{r['step_s']:.4g}", f"{100 * r['mfu_frac']:.1f}", r["mesh"]] for r in self.rows()])


def compare(**searches):
    """The best plans of several searches side by side."""
    return Comparison(searches)
