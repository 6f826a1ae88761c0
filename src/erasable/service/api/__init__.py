"""The API: thin routes over the shop, one file for each subject."""
