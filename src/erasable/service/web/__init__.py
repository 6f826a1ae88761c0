"""The pages that officers, operators and people who asked see in a browser; the markup is in templates."""
