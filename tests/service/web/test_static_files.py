"""Style, script and icon: public, and kept by browsers for a while."""


def test_files_of_pages_may_be_kept_for_a_while(stranger):
    answer = stranger.client.get("/static/style.css")
    assert answer.headers["content-type"].startswith("text/css")
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert stranger.client.get("/static/other.css").status_code == 404
