"""The erasure service: a ledger of requests, a worker that carries them out, an API and pages; needs `service`."""
