"""What a scan costs: CPU seconds beside those of reading the same data, and memory on files larger than it.

Parquet: 20 files of 50,000 people, ids without dictionaries, for one person and for 1,000, against Arrow decoding the
same columns in the same process. Raw bytes: GB for each CPU second. Whole folder: those files with 100 MB of tensors.
Memory: the peak of a process that scans one file of each kind, and of one that scans an empty folder. Nobody who is
sought is there, so every byte is searched; each process also scans a file in which somebody is planted, and must find
them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy

from erasable.scan import Rows, Target, Vocabulary, scan_folder
from reporting import documented_parser, print_table, save, warn_if_busy

_BUCKET = 50_000
_ITEMS = 50_000
_MB = 1_000_000


def main() -> None:
    options = _options()
    if options.measure:
        print(json.dumps(_measured(Path(options.folder), options.people, options.decode)))
        return
    warn_if_busy()
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        work = Path(name)
        _write(work, options)
        result = {"rows": options.rows, "parquet_bytes": _size(work / "parquet"), **_costs(work), **_memory(work)}
    _show(result)
    save("scan_speed", result)


def _costs(work: Path) -> dict[str, object]:
    """Measure CPU seconds; each figure is the least of three processes."""
    found: dict[str, object] = {}
    for people in (1, 1000):
        runs = [_run(work / "parquet", people, decode=True) for _ in range(3)]
        scan, decode = (min(float(run[name]) for run in runs) for name in ("cpu", "decode"))
        raw = min(float(_run(work / "raw", people)["cpu"]) for _ in range(3))
        whole = min(float(_run(work / "whole", people)["cpu"]) for _ in range(3))
        found[f"people_{people}"] = {
            "parquet_cpu_seconds": round(scan, 2),
            "decode_cpu_seconds": round(decode, 2),
            "parquet_over_decode": round((scan - decode) / decode, 2),
            "raw_gb_per_cpu_second": round(_size(work / "raw") / raw / 1e9, 2),
            "whole_folder_cpu_seconds": round(whole, 2),
        }
    return found


def _memory(work: Path) -> dict[str, object]:
    kinds = sorted(path.name for path in (work / "memory").iterdir())
    peaks = {kind: _run(work / "memory" / kind, 1)["peak_mb"] for kind in kinds}
    sizes = {kind: round(_size(work / "memory" / kind) / _MB) for kind in kinds}
    return {"peak_mb": peaks, "file_mb": sizes, "peak_mb_of_imports": _run(work / "empty", 1)["peak_mb"]}


def _run(folder: Path, people: int, decode: bool = False) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", "--folder", str(folder), "--people", str(people)]
    done = subprocess.run([*command, *(["--decode"] if decode else [])], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def _measured(folder: Path, people: int, decode: bool) -> dict[str, float]:
    targets = [_target(number) for number in range(people)]
    with tempfile.TemporaryDirectory() as name:  # also loads the compiled code
        pq.write_table(pa.table({"user_id": ["ann", targets[-1].user]}), Path(name) / "planted")
        if scan_folder(Path(name), targets, Vocabulary()).clean:
            sys.exit("somebody who is there was not found")
    decoded = _seconds(lambda: _decode(folder)) if decode else 0.0
    scanned = _seconds(lambda: _scan(folder, targets))
    return {"cpu": scanned, "decode": decoded, "peak_mb": round(_peak() / _MB)}


def _peak() -> int:
    """Return the most bytes that this process held; ru_maxrss would count those of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _seconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _decode(folder: Path) -> None:
    for path in folder.iterdir():
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(1 << 16, use_threads=False):
                pass


def _scan(folder: Path, targets: list[Target]) -> None:
    if scan_folder(folder, targets, Vocabulary()).residues:
        sys.exit("somebody who is not there was found")


def _target(number: int) -> Target:
    chance = np.random.default_rng(number)
    items = [f"item-{item:05d}" for item in chance.choice(_ITEMS, 10, replace=False)]
    return Target(f"w{number:07d}", rows=Rows(items, chance.integers(1, 6, 10), chance.uniform(1e9, 2e9, 10)))


def _write(work: Path, options: argparse.Namespace) -> None:
    for name in ("parquet", "raw", "whole", "empty", "memory"):
        (work / name).mkdir()
    chance = np.random.default_rng(0)
    for number in range(20):
        path = work / "parquet" / f"bucket-{number}.parquet"
        pq.write_table(
            _table(chance, options.rows // 20, number),
            path,
            use_dictionary=False,
            compression="zstd",
            write_statistics=False,
        )
        os.link(path, work / "whole" / path.name)
    tensors = {"item": chance.normal(size=(_ITEMS, 500)).astype(np.float32)}
    safetensors.numpy.save_file(tensors, work / "whole" / "checkpoint.safetensors")
    _repeat(work / "raw" / "bytes", chance.bytes(100 * _MB), options.raw_megabytes)
    for kind, part in _parts(chance).items():
        (work / "memory" / kind).mkdir()
        # JSON is parsed by Python, at some MB a second.
        megabytes = options.memory_megabytes // (20 if kind == "json_lines" else 1)
        _repeat(work / "memory" / kind / "file", part, megabytes)
    (work / "memory" / "parquet").mkdir()
    table = pa.concat_tables([_table(chance, 2_000_000, 0)] * max(1, options.memory_megabytes // 100))
    pq.write_table(
        table, work / "memory" / "parquet" / "file", row_group_size=len(table), use_dictionary=False, compression="none"
    )


def _table(chance: np.random.Generator, rows: int, bucket: int) -> pa.Table:
    users = pa.array([f"u{bucket * _BUCKET + number:07d}" for number in range(_BUCKET)])
    items = pa.array([f"item-{number:05d}" for number in range(_ITEMS)])
    return pa.table(
        {
            "user_id": users.take(pa.array(np.sort(chance.integers(0, _BUCKET, rows)))),
            "item_id": items.take(pa.array(chance.integers(0, _ITEMS, rows))),
            "rating": chance.integers(1, 6, rows).astype(np.float32),
            "time": 1e9 + chance.integers(0, 10**8, rows).astype(np.float64),
            "group": np.full(rows, bucket, np.int16),
            "held_out": chance.random(rows) < 0.1,
        }
    )


def _parts(chance: np.random.Generator) -> dict[str, bytes]:
    """Return what is repeated in the file of each kind."""
    rows = [(f"u{user:07d}", f"item-{user % 977:05d}", user % 5) for user in range(100_000)]
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return {
        "raw": chance.bytes(20 * _MB),
        "safetensors": len(header).to_bytes(8, "little") + header + chance.bytes(20 * _MB),
        "csv": "".join(f"{user},{item},{rating}\n" for user, item, rating in rows).encode(),
        "json_lines": "".join(
            json.dumps({"user": user, "item": item, "rating": rating}) + "\n" for user, item, rating in rows
        ).encode(),
    }


def _repeat(path: Path, part: bytes, megabytes: int) -> None:
    with path.open("wb") as file:
        for _ in range(-(-megabytes * _MB // len(part))):
            file.write(part)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _show(result: dict[str, object]) -> None:
    one, many = result["people_1"], result["people_1000"]
    print_table(("figure", "1 person", "1,000 people"), [[name, str(one[name]), str(many[name])] for name in one])  # type: ignore[index, attr-defined]
    peaks, sizes = result["peak_mb"], result["file_mb"]
    print_table(("file", "MB", "peak MB"), [[kind, str(sizes[kind]), str(peaks[kind])] for kind in peaks])  # type: ignore[index, attr-defined]
    print(f"peak of imports alone: {result['peak_mb_of_imports']} MB")


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--raw-megabytes", type=int, default=1000)
    parser.add_argument("--memory-megabytes", type=int, default=2000)
    parser.add_argument("--work", type=Path, default=None, help="where the files are made; about 12 GB by default")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--decode", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--people", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
