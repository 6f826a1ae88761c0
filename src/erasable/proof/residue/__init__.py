"""The residue scan: is anybody who was erased still held by a file below a folder?"""

from erasable.proof.residue.folder import scan_folder
from erasable.proof.residue.target import Residue, Scan, Target

__all__ = ["Residue", "Scan", "Target", "scan_folder"]
