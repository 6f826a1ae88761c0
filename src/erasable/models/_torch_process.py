"""The processes in which torch models run: they are started here, and asked over pipes; nothing is written to a disk.

Everything that torch keeps for a whole process (threads, seeds, default types, deterministic algorithms) is set there
and nowhere else, so nobody's own use of torch reaches a model, and no model reaches anybody's. A process ends with the
one that started it, even if that is killed: its input ends then.
"""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from erasable.errors import Refused
from erasable.progress import Advance, ignore

Facts = dict[str, Any]
Named = Mapping[str, NDArray[Any]]


class Code(NamedTuple):
    """What a process imports: the module of a model (one name for all of ours), and a digest of its source."""

    module: str
    digest: str


_LENGTH = 8
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from erasable.models._torch_server import serve; serve(int(sys.argv[2]))"
)
_OF_LIBRARIES = ("ATEN_", "DNNL_", "GOMP_", "KMP_", "MKL_", "OMP_", "ONEDNN_", "OPENBLAS_", "PYTORCH_", "TORCH")
_SECONDS_TO_END = 5


def send(pipe: IO[bytes], facts: Facts, arrays: Named) -> None:
    """Write a message: facts as JSON, arrays as safetensors."""
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for part in (json.dumps(facts).encode(), save(ordered)):
        pipe.write(len(part).to_bytes(_LENGTH, "little"))
        pipe.write(part)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Facts, dict[str, NDArray[Any]]]:
    """Read a message; `EOFError` if the other process has ended."""
    parts = []
    for _ in range(2):
        size = int.from_bytes(_exactly(pipe, _LENGTH), "little")
        parts.append(_exactly(pipe, size))
    return json.loads(parts[0]), load(parts[1])


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content


def found_in() -> list[str]:
    """Return where Python looks for modules; it overlooks entries that are no texts, such as a `Path`."""
    return [one for one in sys.path if isinstance(one, str)]


class TorchProcess:
    """A process in which torch runs with one model's code; it answers one question at a time."""

    def __init__(self, code: Code) -> None:
        self.code = code
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_LIBRARIES)}
        self._process = subprocess.Popen(  # noqa: S603 - this Python
            # -P: nothing is imported from the working folder before it is told where modules are
            [sys.executable, "-P", "-c", _BEGIN, json.dumps(found_in()), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": ""},
            start_new_session=True,  # Ctrl-C is for the process that asks; it ends this one
        )
        self._owner = os.getpid()

    @property
    def works(self) -> bool:
        """Whether it can be asked from here; a process that was forked has none of its own."""
        return self._owner == os.getpid() and self._process.poll() is None

    def ask(self, facts: Facts, arrays: Named, advance: Advance = ignore) -> tuple[Facts, dict[str, NDArray[Any]]]:
        """Return the answer to a question; if anything fails or is interrupted meanwhile, the process is ended."""
        pipes = self._process
        if pipes.stdin is None or pipes.stdout is None:
            raise Refused("the process of the torch model has no pipes: try again")
        try:
            send(pipes.stdin, facts, arrays)
            while True:
                told, found = receive(pipes.stdout)
                if "advance" not in told:
                    break
                advance(told["advance"])
        except (EOFError, BrokenPipeError):
            self.end()
            raise Refused(
                f"the process of the torch model ended with {self._process.returncode}: see above why; if it was "
                "killed, free memory"
            ) from None
        except BaseException:
            self.end()
            raise
        if "error" in told:
            _raise(told)
        return told, found

    def end(self) -> None:
        """End it."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self.wait()

    def wait(self) -> None:
        """Close its pipes, which ends it, and wait for that."""
        if self._owner != os.getpid():
            return
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                continue
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _raise(told: Facts) -> None:
    """Raise what went wrong in the process: no memory, a refusal, or an error of the model."""
    if told["kind"] == "memory":
        raise MemoryError(told["error"])
    if told["kind"] == "refused":
        raise Refused(told["error"])
    raise ValueError(told["error"])


class _Processes:
    """For each module with models, one process that answers for everybody, and one for each stage trained at a time.

    What a module does with torch when it is imported reaches no other. Where its source is another than before, such as
    after `importlib.reload`, it gets new processes.
    """

    def __init__(self) -> None:
        self._answering, self._idle = dict[str, TorchProcess](), dict[str, TorchProcess]()
        self._asked, self._lock = Lock(), Lock()

    @contextmanager
    def answering(self, code: Code) -> Iterator[TorchProcess]:
        """Yield the process that encodes histories; others wait meanwhile."""
        with self._asked:
            process = self._answering[code.module] = _usable(self._answering.get(code.module), code)
            yield process

    @contextmanager
    def training(self, code: Code) -> Iterator[TorchProcess]:
        """Yield a process that nobody else uses; one stays for the next stage."""
        with self._lock:
            idle = self._idle.pop(code.module, None)
        process = _usable(idle, code)
        try:
            yield process
        finally:
            with self._lock:
                stays = process.works and code.module not in self._idle
                if stays:
                    self._idle[code.module] = process
            if not stays:
                process.wait()

    def end(self) -> None:
        """End all of them."""
        for process in (*self._idle.values(), *self._answering.values()):
            process.wait()


def _usable(process: TorchProcess | None, code: Code) -> TorchProcess:
    """Return this process, or another if it does not work any more or has imported other code."""
    if process is not None and process.works and process.code == code:
        return process
    if process is not None:
        process.wait()
    return TorchProcess(code)


PROCESSES = _Processes()
atexit.register(PROCESSES.end)
