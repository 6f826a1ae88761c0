"""The pages: what an officer, an operator and the person who asked see in a browser; templates do the markup."""
