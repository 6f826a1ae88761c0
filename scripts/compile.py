"""Compile the kernels of the built-in models and keep the code, so that no first command or test has to wait."""

from pathlib import Path

from erasable import ALS, DMF, EASE, NMF, Laser, Recommender

RATINGS = Path(__file__).parent.parent / "examples" / "ratings.csv"


def main() -> None:
    """Learn, recommend and forget with each model, on few epochs."""
    chained = Laser(groups=2, grouping="bkm")
    ways = [Recommender(EASE()), Recommender(EASE(neighbours="all")), Recommender(ALS(epochs=1))]
    ways += [Recommender(model(epochs=2), strategy=chained) for model in (NMF, DMF)]
    ways += [Recommender(model(epochs=2), anchors=0.5) for model in (NMF, DMF)]
    for recommender in ways:
        recommender.fit(RATINGS)
        recommender.recommend("42", k=3)
        recommender.forget("42")


if __name__ == "__main__":
    main()
