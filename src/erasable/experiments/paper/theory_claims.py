"""What the measured numbers say of the paper's proofs: verdicts and tables."""

from erasable.experiments.expected_cost import balanced_share
from erasable.experiments.experiment import Claim, Verdict, share_verdict
from erasable.experiments.tables import Row, Table, crossed, labels, markdown, paired, pick, summary

SLACK = 0.01
NEAR = 0.05
SAME = 1e-12
_PAPERS = "L-CBKM"
_UNBALANCED = "k-means"


def claims(table: Table) -> list[Claim]:
    """Return the claims about which something was measured."""
    costs, proof = pick(table, part="cost"), pick(table, part="theorem 1")
    return [
        *([_bound(costs), _chance_of_a_group(costs)] if costs else []),
        *([_identity(proof), _sign(proof)] if proof else []),
    ]


def _bound(costs: Table) -> Claim:
    rows = pick(costs, quantity="by cost")
    over = {method: [_over_bound(row) for row in pick(rows, method=method)] for method in labels(rows, "method")}
    best = {method for method in over if method != _UNBALANCED and _reaches_bound(rows, method)}
    bounded = min(min(ratios) for ratios in over.values()) >= 1 - SLACK
    every = best == over.keys() - {_UNBALANCED}
    verdict: Verdict = "holds" if bounded and every else "holds in part" if bounded and best else "does not hold"
    found = ", ".join(f"{method} {min(ratios):.3f} to {max(ratios):.3f}" for method, ratios in over.items())
    return Claim(
        said="Balanced grouping maximises unlearning efficiency: E(C) ≥ (Z/2)(1 + 1/S), with equality for balanced "
        "groups.",
        rule=f"holds if E(C), taken by cost, is nowhere more than {SLACK:.0%} below the bound, and with all groupings "
        f"into equal numbers of users at most {NEAR:.0%} above it and below plain k-means for each S and seed; in part "
        "if that is so of some of them.",
        measured=f"E(C) over the bound: {found}. Equal are the numbers of users, not the costs.",
        verdict=verdict,
    )


def _over_bound(row: Row) -> float:
    return row["value"] / balanced_share(row["groups"])


def _reaches_bound(rows: Table, method: str) -> bool:
    near = all(_over_bound(row) <= 1 + NEAR for row in pick(rows, method=method))
    return near and all(one["value"] < other["value"] for one, other in paired(rows, "method", method, _UNBALANCED))


def _chance_of_a_group(costs: Table) -> Claim:
    balanced = [row for row in costs if row["method"] != _UNBALANCED]
    ratios = [head["value"] / cost["value"] for head, cost in paired(balanced, "quantity", "by head", "by cost")]
    near = [abs(ratio - 1) <= NEAR for ratio in ratios]
    return Claim(
        said="Users ask with equal probability, so a request hits group i with probability c_i / Z.",
        rule=f"holds if E(C) by head is within {NEAR:.0%} of E(C) by cost in at least 95% of the cases of balanced "
        "groups; in part from half of them on.",
        measured=f"E(C) by head is {min(ratios):.3f} to {max(ratios):.3f} of that by cost; within {NEAR:.0%} in "
        f"{sum(near)} of {len(near)} cases. Groups of equal numbers of users differ in cost.",
        verdict=share_verdict(sum(near) / len(near)),
    )


def _identity(proof: Table) -> Claim:
    largest = max(row["value"] for row in pick(proof, quantity="error"))
    return Claim(
        said="U_p(θ) = U(θ) + Cov[U_θ, p] (Theorem 1).",
        rule=f"holds if both sides differ by at most {SAME:g} everywhere.",
        measured=f"They differ by at most {largest:.1e}. It is true of any numbers whose p sum to 1, the covariance "
        "being a sum over groups; both sides are about the same θ, so it says nothing about how θ was trained.",
        verdict="holds" if largest <= SAME else "does not hold",
    )


def _sign(proof: Table) -> Claim:
    rows = pick(proof, quantity="covariance")
    counts = {method: _positive(pick(rows, method=method)) for method in labels(rows, "method")}
    ours = counts.get(_PAPERS) or (0, 0)
    others = ", ".join(f"{method} {some} of {cases}" for method, (some, cases) in counts.items() if method != _PAPERS)
    found = pick(proof, quantity="correlation", method=_PAPERS)
    return Claim(
        said="ρ is positively related to U, so SeqTrain improves utility.",
        rule=f"holds if Cov[U, p] > 0 for all models and seeds of {_PAPERS}; in part if for at least 80%.",
        measured=f"{_PAPERS}: positive in {ours[0]} of {ours[1]}"
        + (f", correlation {summary(found).mean:.2f} on average" if found else "")
        + (f"; {others}." if others else "."),
        verdict=share_verdict(ours[0] / ours[1] if ours[1] else 0.0, whole=1.0, part=0.8),
    )


def _positive(rows: Table) -> tuple[int, int]:
    return sum(row["value"] > 0 for row in rows), len(rows)


def tables(table: Table) -> str:
    """Return the expected costs, those of several users at once, the seconds and both sides of Theorem 1."""
    costs, proof = pick(table, part="cost"), pick(table, part="theorem 1")
    parts = [
        *(_costs(costs, chance) for chance in ("by cost", "formula", "by head") if costs),
        *([_together(table)] if costs else []),
        *([_seconds(pick(table, part="seconds"))] if pick(table, part="seconds") else []),
        *([_both_sides(proof)] if proof else []),
    ]
    return "\n".join(parts)


def _costs(costs: Table, chance: str) -> str:
    bounds: list[Row] = [
        {"method": "(1 + 1/S) / 2", "groups": groups, "value": balanced_share(groups)}
        for groups in labels(costs, "groups")
    ]
    rows = [*pick(costs, quantity=chance), *bounds]
    return f"E(C) / Z {chance}, against the number of groups:\n\n" + crossed(rows, "method", "groups")


def groups_learned(table: Table) -> int:
    """Return the number of groups that is looked at more closely: that of what was learned."""
    learned = labels(pick(table, part="seconds"), "groups")
    return learned[0] if learned else max(labels(table, "groups"))


def _together(table: Table) -> str:
    groups = groups_learned(table)
    costs = pick(table, part="cost", groups=groups)
    arithmetic = [{**row, "method": "arithmetic"} for row in pick(costs, quantity="arithmetic", method="L-Rand")]
    rows = [*arithmetic, *pick(costs, quantity="drawn")]
    head = f"Share of the chain that is rerun when some random users ask at once, S = {groups}:\n\n"
    return head + crossed(rows, "method", "asking")


def _seconds(rows: Table) -> str:
    body = [[name, str(summary(pick(rows, quantity=name)))] for name in labels(rows, "quantity")]
    model, groups = rows[0]["model"], rows[0]["groups"]
    head = f"E(C) / Z from the seconds that each stage took ({model}, L-Rand, S = {groups}), and their sum:\n\n"
    return head + markdown(["", "mean ± deviation"], body)


def _both_sides(proof: Table) -> str:
    rows = [
        {**row, "chain": f"{row['model']} {row['method']}"}
        for row in proof
        if row["quantity"] in ("U", "U_p", "covariance", "correlation")
    ]
    return "Theorem 1:\n\n" + crossed(rows, "chain", "quantity", _finely)


def _finely(found: list[Row]) -> str:
    """Write more digits than usual: covariances are small."""
    mean, deviation, seeds = summary(found)
    return f"{mean:.5f} ± {deviation:.5f}" if seeds > 1 else f"{mean:.5f}"
