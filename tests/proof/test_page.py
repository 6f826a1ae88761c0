"""The page of a certificate: everything that the certificate says, for people, and nothing that reaches outside."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.page import certificate_page
from erasable.proof.page_style import STYLE

KEPT = 3
FACTS = {
    "request_id": "5d0c7a41e2f94b0c8b6fd1a3907e25c4",
    "scope": "all data of one person",
    "subject": "c1" * 32,
    "version": 17,
    "times": {
        "received": "2026-03-09T08:05:07+00:00",
        "erased": "2026-03-09T08:06:58+00:00",
        "scanned": "2026-03-09T08:07:03+00:00",
        "issued": "2026-03-10T23:59:00+00:00",
    },
    "seconds": 111.372,
    "policy": "fixed",
    "settings": {
        "strategy": "laser",
        "aggregate": None,
        "epochs": 20,
        "epoch_budget": "shared",
        "policy": "fixed",
        "model": "nmf",
        "batch": 2048,
        "negatives": 4,
        "learning_rate": 0.001,
        "grouping": "cbkm-near",
        "groups": 8,
        "order": "easy",
        "reach": 4,
        "holdout": 0.1,
        "min_interactions": 0,
        "rating_scale": [0.5, 5.0],
    },
    "seed": "9223372036854775807",
    "threads": 2,
    "environment": {
        "machine": "x86_64",
        "processor": "znver3",
        "libc": "glibc 2.36",
        "blas": "openblas 0.3.29 Haswell; openblas 0.3.30 Haswell",
        "numpy": "2.3.4",
        "scipy": "1.16.3",
        "numba": "0.62.1",
        "llvmlite": "0.45.1",
        "gensim": "4.4.0",
        "erasable": "0.1.0",
        "kernels": "6d" * 16,
    },
    "software": {"python": "3.11.2", "pyarrow": "22.0.0", "cryptography": "46.0.3"},
    "catalogue": {"declared": False, "items": 3706, "digest": "ca" * 32},
    "rating_scale": [1.0, 5.0],
    "filter": "none",
    "data": {"before": "b4" * 32, "after": "af" * 32},
    "stages_rerun": 8 - KEPT,
    "stages_total": 8,
    "cost_ratio": 0.74837,
    "chain": [
        {
            "position": place,
            "kept": place < KEPT,
            "parent": f"c{place}" * 32 if place else "origin",
            "digest": f"d{place}" * 32,
            "result": f"e{place}" * 32,
        }
        for place in range(8)
    ],
    "scan": {
        "files": 1047,
        "megabytes": 48.3,
        "kinds": {"safetensors": 8, "parquet": 18, "json": 1021},
        "searched": [
            "The person's id, as text in every file, in every encoding that a table may use.",
            "The person's interactions, in every table.",
            "The person's row of parameters, byte by byte, in every checkpoint.",
        ],
    },
    "utility": {
        "protocol": "whole-catalogue",
        "users": 6038,
        "before": {"hr@10": 0.6131, "ndcg@10": 0.2084, "recall@10": 0.1327, "hr@20": 0.7514},
        "after": {"hr@10": 0.6128, "ndcg@10": 0.2087, "recall@10": 0.1327, "hr@20": 0.752},
    },
    "audit": {"number": 14, "hash": "ad" * 32},
    "proves": "The data was erased & `erasable verify` repeats it.",
    "does_not_prove": "It says nothing about copies elsewhere.",
    "public_key": "",
}
KEY = b"07" * 32
DANGEROUS = ("<script>alert(1)</script>", "</style>", '"><img src=x>', "a' onclick='b", "&lt;", "{title}", "<!--")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
IN_LINE = {"b", "code", "strong", "time"}
WITHOUT_END = {"meta"}


def a_certificate(**changes) -> Certificate:
    return Certificate.model_validate(FACTS | changes).signed(KEY)


class Page(HTMLParser):
    """A page as a reader meets it: its elements in order, and the text that is seen."""

    def __init__(self, certificate: Certificate) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.feed(certificate_page(certificate).decode())
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in WITHOUT_END:
            self.open.append(tag)
        self._apart(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self._apart(tag)

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def _apart(self, tag):
        if tag not in IN_LINE:
            self.texts.append((tuple(self.open), "\n"))

    @property
    def text(self) -> str:
        return self.text_in("main")

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def text_in(self, tag: str) -> str:
        """Return what is read within elements of a kind, with each space as one."""
        return in_one_line("".join(data for place, data in self.texts if tag in place))

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def leaves(value, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value in a nested one, with its place."""
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in parts:
            yield from leaves(part, f"{path}.{name}" if path else name)
    else:
        yield path, value


WRITTEN = {
    "kind": "Certificate of erasure",
    "format": "Certificate format 2",
    "version": "Workspace version 17",
    "threads": "Threads 2",
    "seconds": "1 min 51 s",
    "times.received": "Request received 9 March 2026, 08:05:07 UTC",
    "times.erased": "Data erased 9 March 2026, 08:06:58 UTC",
    "times.scanned": "Files searched 9 March 2026, 08:07:03 UTC",
    "times.issued": "Certificate issued 10 March 2026, 23:59:00 UTC",
    "policy": "Policy fixed. The groups, their order and the filter stay as they were decided",
    "settings.aggregate": "aggregate not given",
    "settings.rating_scale.0": "rating_scale 0.5 to 5",
    "settings.rating_scale.1": "rating_scale 0.5 to 5",
    "catalogue.declared": "3,706 items, those of the first learning",
    "catalogue.items": "Catalogue 3,706 items",
    "rating_scale.0": "Rating scale 1 to 5",
    "rating_scale.1": "Rating scale 1 to 5",
    "filter": "Filter none",
    "stages_rerun": "Stages trained again 5 of 8",
    "stages_total": "Stages trained again 5 of 8",
    "cost_ratio": "74.8 %",
    "scan.files": "Files 1,047",
    "scan.megabytes": "Size 48.3 MB",
    "scan.kinds.safetensors": "safetensors files 8",
    "scan.kinds.parquet": "parquet files 18",
    "scan.kinds.json": "json files 1,021",
    "scan.residues": "Traces found 0",
    "utility.users": "6,038 people",
    "audit.number": "Record 14",
    "proves": "The data was erased & erasable verify repeats it.",
}


def as_written(path: str, value: object) -> str:
    """Say how a value must stand on the page; most stand as they are."""
    if path in WRITTEN:
        return WRITTEN[path]
    stage = re.fullmatch(r"chain\.(\d)\.(position|kept)", path)
    if stage:
        place = int(stage[1])
        return f"Stage {place + 1}, {'kept' if place < KEPT else 'made again'}"
    place, _, name = path.partition(".")
    if place in ("settings", "environment", "software"):
        return f"{name} {value}"
    if path.startswith("utility.") and isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


PAGE = Page(a_certificate())
FIELDS = [*leaves(a_certificate().model_dump())]


class TestWhatItSays:
    @pytest.mark.parametrize(("path", "value"), FIELDS, ids=[path for path, _ in FIELDS])
    def test_every_field_of_the_certificate_can_be_read(self, path, value):
        assert as_written(path, value) in PAGE.text

    def test_the_first_sentence_says_what_was_erased_and_when(self):
        assert PAGE.text.startswith(
            "Certificate of erasure On 9 March 2026, 08:06:58 UTC, all data of one person was erased from a "
            "recommender, and every part of the model that had learned from it was trained again without it."
        )
        assert (
            "some interactions of one person were erased from a recommender, and every part of the model that had "
            "learned from them was trained again without them."
        ) in Page(a_certificate(scope="some interactions of one person")).text

    def test_the_groups_are_an_ordered_list_in_words(self):
        listed = re.search(
            r'<ol class="groups" role="list">(.*?)</ol>', certificate_page(a_certificate()).decode(), re.S
        )
        items = [re.sub("<[^>]+>", "", item) for item in re.findall("<li.*?</li>", listed[1], re.S)]
        kept = [f"Stage {number} kept" for number in (1, 2, 3)]
        assert items == kept + [f"Stage {number} made again" for number in (4, 5, 6, 7, 8)]
        assert re.findall('<li class="(.*?)">', listed[1]) == ["kept"] * 3 + ["again"] * 5

    @pytest.mark.parametrize(
        ("rerun", "sentence"),
        [
            (0, "The erased data had a part in none of them, so all were kept as they were."),
            (5, "The others are from before the erasure and were kept as they were."),
            (8, "All of them were removed and made again without the erased data."),
        ],
    )
    def test_what_happened_is_told_by_how_much_was_trained_again(self, rerun, sentence):
        chain = [{**stage, "kept": place < 8 - rerun} for place, stage in enumerate(FACTS["chain"])]
        page = Page(a_certificate(stages_rerun=rerun, chain=chain))
        assert sentence in page.text
        assert ("no part of the model that people share had learned from it" in page.text) == (rerun == 0)

    def test_rows_that_were_solved_are_told_from_stages(self):
        rows = {**FACTS["chain"][0], "position": 8, "kept": False}
        page = Page(a_certificate(chain=[*FACTS["chain"], rows]))
        assert "one for each person, worked out from that person's own data alone" in page.text
        assert "Rows of group 1 made again" in page.text
        assert "worked out from" not in PAGE.text

    def test_a_change_is_shown_with_its_sign(self):
        measures = [*re.findall(r"\w+@\d+ (?:\S+ ){3}", PAGE.text_in("tbody"))]
        assert measures == [
            "hr@10 0.6131 0.6128 −0.0003 ",
            "hr@20 0.7514 0.7520 +0.0006 ",
            "ndcg@10 0.2084 0.2087 +0.0003 ",
        ]
        assert PAGE.text_in("tbody").endswith("Recall in the first 10 recall@10 0.1327 0.1327 none")

    def test_the_file_that_is_signed_and_the_commands_that_check_it_are_named(self):
        command = f"erasable verify DIR --certificate {FACTS['request_id']}.json"
        assert PAGE.text_in("pre") == f"{command} {command} --receipt RECEIPT"

    @pytest.mark.parametrize(
        ("policy", "meaning"),
        [
            ("fixed", "stay as they were decided while the erased data was there"),
            ("independent", "follows from that person's own id alone"),
            ("regroup", "were decided anew without the erased data"),
        ],
    )
    def test_the_policy_is_explained(self, policy, meaning):
        assert re.search(rf"Policy {policy}\. [^.]*{meaning}", Page(a_certificate(policy=policy)).text)


class TestValues:
    @pytest.mark.parametrize(
        ("field", "value", "written"),
        [
            ("cost_ratio", 0.0, "0.0 %"),
            ("cost_ratio", 0.0004, "under 0.1 %"),
            ("cost_ratio", 1.0412, "104.1 %"),
            ("seconds", 0.004, "0.004 seconds"),
            ("seconds", 59.9, "59.9 seconds"),
            ("seconds", 59.96, "1 min 0 s"),
            ("seconds", 3599.9, "1 h 0 min 0 s"),
            ("seconds", 7384.0, "2 h 3 min 4 s"),
            ("rating_scale", (0.5, 5.0), "Rating scale 0.5 to 5"),
            ("catalogue", {"declared": True, "items": 1, "digest": ""}, "Catalogue 1 item, declared"),
            ("settings", {"one": True, "two": False}, "one yes two no"),
            ("settings", {"several": [1, 2, 3], "rate": 1e-05}, "rate 1e-05 several [1, 2, 3]"),
        ],
    )
    def test_values_are_written_for_people(self, field, value, written):
        assert written in Page(a_certificate(**{field: value})).text

    def test_sizes_have_the_unit_that_people_use(self):
        assert "Size 1,048.3 MB" in Page(a_certificate(scan=FACTS["scan"] | {"megabytes": 1048.3})).text


class TestWhatIsNotThere:
    def test_a_recommender_in_memory_has_no_files_to_search(self):
        page = Page(a_certificate(scan=None))
        assert "was held in memory and has no files" in page.text
        assert "Nothing to search: it has no files 9 March 2026, 08:07:03 UTC" in page.text
        assert "Nothing was found" not in page.text
        assert "Traces found" not in page.text

    def test_without_a_holdout_nothing_is_said_about_how_well_it_recommends(self):
        assert "How well it recommends" in PAGE.text_in("h2")
        assert "How well it recommends" not in Page(a_certificate(utility=None)).text_in("h2")

    def test_a_measure_that_was_not_taken_before_has_no_change(self):
        page = Page(a_certificate(utility=FACTS["utility"] | {"before": None, "after": {"hr@10": 0.5}}))
        assert page.text_in("tbody") == "Hit rate in the first 10 hr@10 not measured 0.5000"

    def test_a_measure_of_another_kind_stands_by_its_name(self):
        page = Page(a_certificate(utility=FACTS["utility"] | {"before": {"auc@5": 0.7}, "after": {"hr": 0.5}}))
        assert page.text_in("tbody") == "hr not measured 0.5000 auc@5 0.7000 not measured"

    def test_a_time_that_is_not_universal_stands_as_it_is(self):
        times = FACTS["times"] | {"received": "2026-03-09T08:05:07+02:00", "issued": "one day"}
        page = Page(a_certificate(times=times))
        assert "Request received 2026-03-09T08:05:07+02:00" in page.text
        assert "Certificate issued one day" in page.text
        assert [time["datetime"] for time in page.attributes("time")] == [
            times[name] for name in ("erased", "erased", "scanned")
        ]


class TestOneFile:
    def test_the_same_certificate_gives_the_same_page(self):
        certificate = a_certificate()
        assert certificate_page(certificate) == certificate_page(certificate)
        assert certificate_page(certificate) == certificate_page(read_certificate(certificate.encoded()))

    def test_another_certificate_gives_another_page(self):
        assert certificate_page(a_certificate()) != certificate_page(a_certificate(threads=3))

    def test_it_asks_for_nothing_else_and_runs_nothing(self):
        style = PAGE.text_in("style")
        assert style
        assert not re.search(r"url\(|@import|@font-face|</", style)
        assert not {"script", "link", "img", "iframe", "object", "form", "base", "a"} & {*PAGE.tags}
        names = {name for _, attributes in PAGE.elements for name in attributes}
        assert names <= {"lang", "charset", "http-equiv", "content", "name", "class", "role", "datetime", "scope"}

    def test_the_browser_is_told_to_load_nothing(self):
        assert {"http-equiv": "Content-Security-Policy", "content": POLICY} in PAGE.attributes("meta")


class TestSemantics:
    def test_the_language_the_title_and_one_first_heading(self):
        assert PAGE.attributes("html") == [{"lang": "en"}]
        assert PAGE.text_in("title") == f"Certificate of erasure {FACTS['request_id']}"
        assert PAGE.text_in("h1") == "Certificate of erasure"
        assert PAGE.tags.count("h1") == 1

    def test_no_level_of_headings_is_skipped(self):
        levels = [int(tag[1]) for tag in PAGE.tags if re.fullmatch("h[1-6]", tag)]
        assert len(levels) > 10
        assert all(next_one <= level + 1 for level, next_one in pairwise(levels))

    def test_the_heads_of_tables_say_what_they_are_the_head_of(self):
        scopes = [attributes.get("scope") for attributes in PAGE.attributes("th")]
        assert scopes.count("col") == 4
        assert scopes.count("row") == 4
        assert len(scopes) == 8

    def test_lists_without_numbers_are_still_lists(self):
        assert [attributes["role"] for attributes in PAGE.attributes("ol")] == ["list"] * 3

    def test_what_stands_between_backticks_is_code(self):
        assert "erasable verify" in PAGE.text_in("code")
        odd = Page(a_certificate(proves="one ` alone"))
        assert "one ` alone" in odd.text

    def test_the_times_are_also_for_machines(self):
        named = [attributes["datetime"] for attributes in PAGE.attributes("time")]
        assert named == [FACTS["times"][name] for name in ("erased", "received", "erased", "scanned", "issued")]


def brightness(colour: str) -> float:
    """Return the relative luminance of a colour, by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted([brightness(one), brightness(other)])
    return (light + 0.05) / (dark + 0.05)


class TestColours:
    def test_the_contrast_of_black_and_white_is_21(self):
        assert contrast("#ffffff", "#000000") == pytest.approx(21)
        assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)

    @pytest.mark.parametrize("place", [0, 1, 2], ids=["light", "dark", "print"])
    def test_text_has_the_contrast_of_level_aa(self, place):
        palettes = [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in STYLE.split(":root")[1:]]
        assert len(palettes) == 3
        colour = palettes[place]
        for background in ("paper", "tint"):
            assert contrast(colour["ink"], colour[background]) >= 7
            assert contrast(colour["quiet"], colour[background]) >= 4.5
        assert contrast(colour["strong"], colour["on-strong"]) >= 4.5
        assert contrast(colour["edge"], colour["paper"]) >= 3
        assert contrast(colour["strong"], colour["paper"]) >= 3


def with_text_everywhere(text: str) -> Certificate:
    """Return a certificate that says the same wherever it may say anything."""
    return a_certificate(
        **dict.fromkeys(("subject", "policy", "seed", "filter", "proves", "does_not_prove"), text),
        times=dict.fromkeys(FACTS["times"], text),
        settings={text: text},
        environment={text: text},
        software={text: text},
        catalogue=FACTS["catalogue"] | {"digest": text},
        data={"before": text, "after": text},
        chain=[{"position": 0, "kept": True, "parent": text, "digest": text, "result": text}],
        scan={"files": 1, "megabytes": 0.1, "kinds": {text: 1}, "searched": [text]},
        utility={"protocol": text, "users": 1, "before": None, "after": {text: 0.5}},
        audit={"number": 1, "hash": text},
    )


class TestEscaping:
    @given(st.text(st.characters(codec="utf-8", exclude_characters="`"), min_size=1) | st.sampled_from(DANGEROUS))
    def test_no_text_becomes_markup_and_all_of_it_can_be_read(self, text):
        page, plain = Page(with_text_everywhere(text)), Page(with_text_everywhere("plain"))
        assert page.elements == plain.elements
        count = plain.text.count("plain")
        assert count == 28
        assert page.text.count(in_one_line(text)) >= count or not in_one_line(text)
