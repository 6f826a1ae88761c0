"""Stands between clients and a Postgres, and cuts the line when a commit is on its way: its outcome is unknown then."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

_COMMIT = b"COMMIT\0"


class CuttingProxy:
    """Lets a commit through to the server and cuts the client off, at once or once it is done; the next is spared."""

    def __init__(self, server: Path, when_done: bool) -> None:
        self._server, self._when_done = server, when_done
        self._folder = TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.cuts = 0
        self._spared = False
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "CuttingProxy":
        self._listener.bind(str(self.folder / self._server.name))
        self._listener.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._server))
            cut = threading.Event()
            back = threading.Thread(target=_pass_on, args=(server, client, cut), daemon=True)
            back.start()
            while data := client.recv(65536):
                if _COMMIT in data:
                    self._spared = not self._spared
                    if self._spared:  # it was not before: this one is cut
                        self.cuts += 1
                        cut.set()
                server.sendall(data)
                if cut.is_set():
                    time.sleep(0.1 if self._when_done else 0)
                    break
            server.shutdown(socket.SHUT_RDWR)
            client.shutdown(socket.SHUT_RDWR)
            back.join()


def _pass_on(server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
    with suppress(OSError):
        while data := server.recv(65536):
            if not cut.is_set():
                client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
