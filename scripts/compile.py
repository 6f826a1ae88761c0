"""Compile the kernels of the built-in models, of hashing and of the scan, so that no first command has to wait."""

from pathlib import Path

from erasable import ALS, DMF, EASE, NMF, Laser, Recommender
from erasable.data import Ids
from erasable.scan import Target, Vocabulary, scan_contents
from erasable.seeding import id_keys
from erasable.seeding.hashing import FEW

RATINGS = Path(__file__).parent.parent / "examples" / "ratings.csv"


def main() -> None:
    """Hash many ids; learn, recommend and forget with each model, on few epochs; scan."""
    id_keys(0, "compile", Ids.of(map(str, range(FEW))))
    chained = Laser(groups=2, grouping="bkm")
    ways = [Recommender(EASE()), Recommender(EASE(neighbours="all")), Recommender(ALS(epochs=1))]
    ways += [Recommender(model(epochs=2), strategy=chained) for model in (NMF, DMF)]
    ways += [Recommender(model(epochs=2), anchors=0.5) for model in (NMF, DMF)]
    for recommender in ways:
        recommender.fit(RATINGS)
        recommender.recommend("42", k=3)
        recommender.forget("42")
    scan_contents({"ratings.csv": RATINGS.read_bytes()}, [Target("customer-42")], Vocabulary())


if __name__ == "__main__":
    main()
