"""Packages of others, as pip installs them: a module and what it registers."""

from pathlib import Path


def installed(site: Path, name: str, source: str, **points: str) -> Path:
    """Put a package of one module into a folder, with an entry point for each name of a group; return the module."""
    module = site / f"{name}.py"
    module.write_text(source)
    facts = site / f"{name}-1.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = [f"[erasable.{group}]\n{point.replace('=', f' = {name}:')}" for group, point in points.items()]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (facts / "RECORD").write_text(f"{name}.py,,\n")
    return module
