"""The command: thin, one file for each subcommand; what they do lives in operations."""
