"""The page of a certificate: everything that the certificate says, for people, and nothing that reaches outside."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.proof.certificate import Certificate, Statement, read_certificate
from erasable.proof.issuing import STYLE, certificate_page

FACTS = {
    "request_id": "5d0c7a41e2f94b0c8b6fd1a3907e25c4",
    "issuer": "Example Ltd",
    "scope": "all data of one person",
    "subject": "c1" * 32,
    "reference": "c2" * 32,
    "version": 17,
    "days": {"asked": "2026-03-02", "erased": "2026-03-09", "searched": "2026-03-10", "issued": "2026-03-11"},
    "duration": "< 1 hour",
    "cost": "< 20 %",
    "policy": "fixed",
    "policy_means": "The groups stay as they were.",
    "revision": 7,
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
    },
    "software": {"python": "3.11.2", "pyarrow": "22.0.0", "cryptography": "46.0.3"},
    "catalogue": {
        "declared": False,
        "items": "< 10,000",
        "origin": "those of the first learning",
        "digest": "ca" * 32,
    },
    "rating_scale": [1.0, 5.0],
    "filter": "none",
    "data": {"before": "b4" * 32, "after": "af" * 32},
    "scan": {
        "files": "< 10,000",
        "size": "< 100 MB",
        "kinds": ["safetensors", "parquet", "json"],
        "searched": [
            "The person's id, as text in every file, in every encoding that a table may use.",
            "The person's interactions, in every table.",
            "The person's row of parameters, byte by byte, in every checkpoint.",
        ],
    },
    "utility": {
        "protocol": "whole-catalogue",
        "users": "< 10,000",
        "grain": 0.0001,
        "before": {"hr@10": 0.6131, "ndcg@10": 0.2084, "recall@10": 0.1327, "hr@20": 0.7514},
        "after": {"hr@10": 0.6128, "ndcg@10": 0.2087, "recall@10": 0.1327, "hr@20": 0.752},
    },
    "audit": {"number": 14, "hash": "ad" * 32},
    "do_not_learn": "A keyed digest is kept.",
    "proves": "The data was erased & `erasable verify` repeats it.",
    "does_not_prove": "It says nothing about copies elsewhere.",
    "public_key": "",
}
KEY = b"07" * 32
DANGEROUS = ("<script>alert(1)</script>", "</style>", '"><img src=x>', "a' onclick='b", "&lt;", "{title}", "<!--")
TEMPLATES_OWN = ("{{ 7 * 7 }}", "{{ said.issuer }}", "{% raw %}", "{# unseen #}", "{%- include 'certificate.css' -%}")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
IN_LINE = {"b", "code", "strong", "time"}
WITHOUT_END = {"meta"}


def a_certificate(**changes) -> Certificate:
    return read_certificate(Statement.model_validate(FACTS | changes).signed(KEY))


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
    "format": "Certificate format 3",
    "issuer": "Issued by Example Ltd",
    "version": "Workspace version 17",
    "threads": "Threads 2",
    "duration": "Time < 1 hour",
    "cost": "Work, compared with retraining all at once < 20 %",
    "days.asked": "Asked for 2 March 2026",
    "days.erased": "Erased 9 March 2026",
    "days.searched": "Files searched 10 March 2026",
    "days.issued": "Certificate issued 11 March 2026",
    "policy": "Policy fixed. The groups stay as they were.",
    "settings.aggregate": "aggregate not given",
    "settings.rating_scale.0": "rating_scale 0.5 to 5",
    "settings.rating_scale.1": "rating_scale 0.5 to 5",
    "revision": "revision 7",
    "catalogue.declared": "those of the first learning",
    "catalogue.items": "Catalogue < 10,000 items",
    "catalogue.origin": "< 10,000 items, those of the first learning",
    "rating_scale.0": "Rating scale 1 to 5",
    "rating_scale.1": "Rating scale 1 to 5",
    "filter": "Filter none",
    "scan.files": "Files < 10,000",
    "scan.size": "Size < 100 MB",
    "scan.kinds.0": "Kinds of files safetensors, parquet, json",
    "scan.residues": "Traces found 0",
    "utility.users": "of people who are left (< 10,000)",
    "utility.grain": "Rounded to steps of 0.0001",
    "audit.number": "Record 14",
    "proves": "The data was erased & erasable verify repeats it.",
}


def as_written(path: str, value: object) -> str:
    """Say how a value must stand on the page; most stand as they are."""
    if path in WRITTEN:
        return WRITTEN[path]
    place, _, name = path.partition(".")
    if place in ("settings", "environment", "software"):
        return f"{name} {value}"
    if path.startswith("utility.") and isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


PAGE = Page(a_certificate())
FIELDS = [*leaves(json.loads(a_certificate().content))]


class TestWhatItSays:
    @pytest.mark.parametrize(("path", "value"), FIELDS, ids=[path for path, _ in FIELDS])
    def test_every_field_of_the_certificate_can_be_read(self, path, value):
        assert as_written(path, value) in PAGE.text

    def test_the_first_sentence_says_what_was_erased_and_when(self):
        assert PAGE.text.startswith(
            "Certificate of erasure On 9 March 2026, all data of one person was erased from a recommender, and "
            "whatever in its model had learned from it was removed, or made again without it."
        )
        assert (
            "some interactions of one person were erased from a recommender, and whatever in its model had learned "
            "from them was removed, or made again without them."
        ) in Page(a_certificate(scope="some interactions of one person")).text

    def test_no_stage_and_no_group_is_told_from_another(self):
        assert not re.search(r"[Ss]tage \d|[Gg]roup \d|\d of \d|kept as|made again\b(?! without)", PAGE.text)

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


class TestValues:
    @pytest.mark.parametrize(
        ("field", "value", "written"),
        [
            ("cost", "none", "Work, compared with retraining all at once none"),
            ("cost", "more", "Work, compared with retraining all at once 50 % or more"),
            ("duration", "more", "Time 1 day or more"),
            ("rating_scale", (0.5, 5.0), "Rating scale 0.5 to 5"),
            (
                "catalogue",
                {"declared": True, "items": "< 10", "origin": "declared", "digest": ""},
                "Catalogue < 10 items, declared",
            ),
            ("settings", {"one": True, "two": False}, "one yes two no"),
            ("settings", {"several": [1, 2, 3], "rate": 1e-05}, "rate 1e-05 several [1, 2, 3]"),
        ],
    )
    def test_values_are_written_for_people(self, field, value, written):
        assert written in Page(a_certificate(**{field: value})).text

    def test_a_measure_has_the_decimals_of_the_step_that_it_is_rounded_to(self):
        utility = FACTS["utility"] | {"grain": 0.02, "before": {"hr@10": 0.62}, "after": {"hr@10": 0.6}}
        page = Page(a_certificate(utility=utility))
        assert "Rounded to steps of 0.02" in page.text
        assert page.text_in("tbody") == "Hit rate in the first 10 hr@10 0.62 0.60 −0.02"


class TestWhatIsNotThere:
    def test_a_recommender_in_memory_has_no_files_to_search(self):
        page = Page(a_certificate(scan=None, days=FACTS["days"] | {"searched": None}))
        assert "was held in memory and has no files" in page.text
        assert "Files searched" not in page.text
        assert "Nothing was found" not in page.text
        assert "Traces found" not in page.text

    def test_without_an_issuer_none_is_named(self):
        assert "Issued by" not in Page(a_certificate(issuer=None)).text

    def test_what_is_kept_is_said_if_something_is(self):
        assert "What is kept" in PAGE.text_in("h2")
        assert "What is kept" not in Page(a_certificate(do_not_learn=None)).text_in("h2")

    def test_without_a_holdout_nothing_is_said_about_how_well_it_recommends(self):
        assert "How well it recommends" in PAGE.text_in("h2")
        assert "How well it recommends" not in Page(a_certificate(utility=None)).text_in("h2")

    def test_a_measure_that_was_not_taken_before_has_no_change(self):
        page = Page(a_certificate(utility=FACTS["utility"] | {"before": None, "after": {"hr@10": 0.5}}))
        assert page.text_in("tbody") == "Hit rate in the first 10 hr@10 not measured 0.5000"

    def test_a_measure_of_another_kind_stands_by_its_name(self):
        page = Page(a_certificate(utility=FACTS["utility"] | {"before": {"auc@5": 0.7}, "after": {"hr": 0.5}}))
        assert page.text_in("tbody") == "hr not measured 0.5000 auc@5 0.7000 not measured"

    def test_a_day_that_is_none_stands_as_it_is(self):
        days = FACTS["days"] | {"asked": "2026-13-09", "issued": "one day"}
        page = Page(a_certificate(days=days))
        assert "Asked for 2026-13-09" in page.text
        assert "Certificate issued one day" in page.text
        assert [time["datetime"] for time in page.attributes("time")] == [
            days[name] for name in ("erased", "erased", "searched")
        ]


class TestOneFile:
    def test_the_same_certificate_gives_the_same_page(self):
        certificate = a_certificate()
        assert certificate_page(certificate) == certificate_page(certificate)
        assert certificate_page(certificate) == certificate_page(read_certificate(certificate.content))

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
        assert [attributes["role"] for attributes in PAGE.attributes("ol")] == ["list"]

    def test_what_stands_between_backticks_is_code(self):
        assert "erasable verify" in PAGE.text_in("code")
        odd = Page(a_certificate(proves="one ` alone"))
        assert "one ` alone" in odd.text

    def test_the_times_are_also_for_machines(self):
        named = [attributes["datetime"] for attributes in PAGE.attributes("time")]
        assert named == [FACTS["days"][name] for name in ("erased", "asked", "erased", "searched", "issued")]


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
        assert contrast(colour["edge"], colour["paper"]) >= 3
        assert contrast(colour["strong"], colour["paper"]) >= 3


def with_text_everywhere(text: str) -> Certificate:
    """Return a certificate that says the same wherever it may say anything."""
    free = ("issuer", "subject", "reference", "duration", "cost", "policy", "policy_means", "filter", "do_not_learn")
    return a_certificate(
        **dict.fromkeys((*free, "proves", "does_not_prove"), text),
        days=dict.fromkeys(FACTS["days"], text),
        settings={text: text},
        environment={text: text},
        software={text: text},
        catalogue=dict.fromkeys(("items", "origin", "digest"), text) | {"declared": False},
        data={"before": text, "after": text},
        scan={"files": text, "size": text, "kinds": [text], "searched": [text]},
        utility={"protocol": text, "users": text, "grain": 0.5, "before": None, "after": {text: 0.5}},
        audit={"number": 1, "hash": text},
    )


class TestEscaping:
    @pytest.mark.parametrize("text", DANGEROUS + TEMPLATES_OWN)
    def test_what_looks_like_markup_or_a_template_stands_as_it_is(self, text):
        page = Page(with_text_everywhere(text))
        assert page.elements == Page(with_text_everywhere("plain")).elements
        assert page.text.count(in_one_line(text)) == 35

    @given(st.text(st.characters(codec="utf-8", exclude_characters="`"), min_size=1))
    def test_no_text_becomes_markup_and_all_of_it_can_be_read(self, text):
        page, plain = Page(with_text_everywhere(text)), Page(with_text_everywhere("plain"))
        assert page.elements == plain.elements
        count = plain.text.count("plain")
        assert count == 35
        assert page.text.count(in_one_line(text)) >= count or not in_one_line(text)
