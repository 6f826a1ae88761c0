"""The erasure service: a queue of requests, a worker, an API and web pages; needs the extra `service`."""
