"""The command line: one thin file for each subcommand; the work is in operations."""
