"""The paper's experiments, a module each: grid, claims and figures."""
