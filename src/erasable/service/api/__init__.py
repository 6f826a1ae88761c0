"""The API: thin routes over the service, and the JSON that they take and give."""
