"""Datasets and checkpoints for remote tasks: what lies in the workspace is named, the rest is written."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from erasable.chain.buckets import Bucket, Buckets
from erasable.chain.checkpoints import Checkpoint
from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions, RatingScale
from erasable.workspace import files
from erasable.workspace._settings_file import decode_settings, encode_settings
from erasable.workspace._versions import (
    buckets_in,
    cohesion_in,
    group_records,
    load_catalogue,
    load_counts,
    load_features,
    load_kept_items,
    write_catalogue,
    write_counts,
)
from erasable.workspace.checkpoints import decode_arrays, decode_environment, encode_checkpoint
from erasable.workspace.folder import CheckedFolder
from erasable.workspace.manifest import BucketRecord, CatalogueRecord, CountsRecord, GroupRecord
from erasable.workspace.scratch import Scratch
from erasable.workspace.tables import StoredFile, decode_interactions, encode_interactions, keep_bucket


def put_dataset(scratch: Scratch, dataset: Dataset) -> str:
    """Describe a dataset in a scratch folder: buckets in files of the workspace are named, the others written."""
    written, kept = CheckedFolder(scratch.folder, {}), dict[str, str]()
    numbers, groups = range(len(dataset.buckets)), dataset.group_count
    buckets = [_bucket(scratch, dataset.buckets, number, groups, written, kept) for number in numbers]
    facts = {
        "config": written.write(files.CONFIG, encode_settings(dataset.config)),
        "scale": [dataset.scale.low, dataset.scale.high],
        "catalogue": write_catalogue(written, dataset).model_dump(),
        "groups": [record.model_dump() for record in group_records(dataset)],
        "cohesion": bool(dataset.cohesion),
        "buckets": buckets,
        "counts": write_counts(written, dataset).model_dump(),
        "kept": kept,
    }
    return scratch.put_facts("dataset.json", {**facts, "written": written.hashes()})


def _bucket(
    scratch: Scratch, buckets: Buckets, number: int, groups: int, written: CheckedFolder, kept: dict[str, str]
) -> dict[str, Any]:
    """Return the record of a bucket, and whether its file is one of the workspace."""
    part = buckets.parts[number]
    stays = isinstance(part, StoredFile) and part.folder.root.absolute() == scratch.root
    if isinstance(part, StoredFile) and stays:
        record = part.record
        kept |= part.folder.hashes([record.file])
    else:
        bucket = part.over(buckets.items) if isinstance(part, Bucket) else part.read(buckets.items)
        record = keep_bucket(written, bucket, number, buckets.seed, groups).record
    return {**record.model_dump(), "slot": buckets.starts[number], "stays": stays}


def get_dataset(scratch: Scratch, file: str) -> Dataset:
    """Return a dataset that was described; its buckets are read, and checked, when they are used."""
    facts = scratch.facts(file)
    written, kept = CheckedFolder(scratch.folder, facts["written"]), CheckedFolder(scratch.root, facts["kept"])
    config = decode_settings(written.read(facts["config"]), facts["config"])
    record, groups = CatalogueRecord(**facts["catalogue"]), [GroupRecord(**one) for one in facts["groups"]]
    catalogue = load_catalogue(written, record)
    items, counts = load_counts(written, CountsRecord(**facts["counts"]), config, groups, catalogue)
    placed = [
        (kept if one["stays"] else written, BucketRecord(file=one["file"], slot=one["slot"]))
        for one in facts["buckets"]
    ]
    return Dataset(
        config,
        catalogue,
        RatingScale(*facts["scale"]),
        buckets_in(placed, counts, items, len(groups)),
        len(groups),
        load_kept_items(written, record),
        tuple(map(cohesion_in, groups)) if facts["cohesion"] else (),
        counts,
        load_features(written, record),
    )


def sharing_files(dataset: Dataset, other: Dataset) -> Dataset:
    """Return a dataset whose buckets are those of another one where both have the same file."""
    there = {_place(part): part for part in other.buckets.parts if isinstance(part, StoredFile)}
    parts = [there.get(_place(part), part) if isinstance(part, StoredFile) else part for part in dataset.buckets.parts]
    own = dataset.buckets
    return replace(dataset, buckets=Buckets(parts, own.starts, own.items, own.seed))


def _place(part: StoredFile) -> Path:
    return part.folder.root / part.record.file


def put_rows(scratch: Scratch, rows: Interactions) -> str:
    """Write interactions."""
    return scratch.put("rows.parquet", encode_interactions(rows))


def get_rows(scratch: Scratch, file: str) -> Interactions:
    """Return interactions that were written, over their own items."""
    return decode_interactions(scratch.get(file))


def put_checkpoint(scratch: Scratch, checkpoint: Checkpoint) -> dict[str, Any]:
    """Write a checkpoint, and return what is needed to read it."""
    file = scratch.put("checkpoint.safetensors", encode_checkpoint(checkpoint))
    names = {"fingerprint": checkpoint.fingerprint, "parent": checkpoint.parent, "by_item": sorted(checkpoint.by_item)}
    return {**names, "file": file}


def get_checkpoint(scratch: Scratch, facts: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint that was written."""
    content = scratch.get(facts["file"])
    arrays, environment = decode_arrays(content), decode_environment(content)
    return Checkpoint.from_arrays(facts["fingerprint"], facts["parent"], arrays, environment, facts["by_item"])
