"""The entry point of the command, also as `python -m erasable`: it handles Ctrl-C before anything else is loaded."""

import os


def main() -> None:
    """Load the command and run it; Ctrl-C ends it with one line, whatever it is doing."""
    try:
        from erasable.interrupts import guarded

        guarded(_command)
    except KeyboardInterrupt:  # before the guard was in place
        os.write(2, b"erasable: stopped; nothing is left half done\n")
        os._exit(130)


def _command() -> None:
    import gc

    # What is imported stays to the end: looking through it for garbage takes a tenth of a short command's time.
    gc.disable()
    from erasable.without_pandas import keep_pandas_out

    keep_pandas_out()
    # Pydantic looks for plugins in every installed package, which takes 20 ms; they would see settings and documents.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from erasable.cli.main import main as command

    gc.freeze()
    gc.enable()
    command()


if __name__ == "__main__":
    main()
