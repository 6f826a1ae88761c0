"""The page of the API: every route is there, and links lead to it."""

import re
from html import unescape


def test_every_route_of_the_api_is_there(stranger):
    described = stranger.client.get("/openapi.json").json()["paths"]
    text = stranger.get("/docs")
    for path, methods in described.items():
        assert all(f"<h3><code>{method.upper()} {path}</code></h3>" in text for method in methods)


def test_links_lead_to_routes(stranger):
    text = unescape(stranger.get("/docs"))
    anchors = re.findall(r'href="#([^"]+)"', text)
    assert len(anchors) > 10
    assert all(f'id="{anchor}"' in text for anchor in anchors)
