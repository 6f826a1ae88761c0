"""The page that documents the API, made from its OpenAPI description."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi import Request as HttpRequest
from fastapi.routing import APIRoute

from erasable.requests.tokens import Caller
from erasable.service._http import OPEN_PAGES, RESPONSES, routes_of, rule_of
from erasable.service.web._pages import page

_Schema = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")
_EXAMPLES = {"string": "…", "integer": 10, "number": 4.5, "boolean": True}


@dataclass(frozen=True)
class Field:
    """A field of a body, or a parameter."""

    name: str
    kind: str
    required: bool
    about: str


@dataclass(frozen=True)
class Answer:
    """A possible answer."""

    status: str
    about: str
    fields: Sequence[Field]


@dataclass(frozen=True)
class Documented:
    """One route of the API."""

    method: str
    path: str
    about: str
    roles: Sequence[str]
    """Who may use it; anyone if there are none."""
    parameters: Sequence[Field]
    body: Sequence[Field]
    answers: Sequence[Answer]
    curl: str

    @property
    def anchor(self) -> str:
        """Its anchor on the page."""
        letters = "".join(letter if letter.isalnum() else "-" for letter in self.path)
        return f"{self.method.lower()}{letters.rstrip('-')}"


def documented_routes(app: FastAPI) -> dict[str, list[Documented]]:
    """Return the routes of an application's API by subject, in their order."""
    reference, roles = _Reference(app.openapi()), _roles(app)
    found: dict[str, list[Documented]] = {}
    for path, methods in reference.schema["paths"].items():
        for method in filter(methods.__contains__, _METHODS):
            subject = methods[method].get("tags", ["other"])[0]
            entry = reference.route(method.upper(), path, methods[method], roles[method.upper(), path])
            found.setdefault(subject, []).append(entry)
    return found


def _roles(app: FastAPI) -> dict[tuple[str, str], Sequence[str]]:
    rules = ((route, rule_of(route)) for route in routes_of(app) if isinstance(route, APIRoute))
    return {
        (method, route.path_format): sorted(rule.roles)
        for route, rule in rules
        if rule
        for method in route.methods or ()
    }


class _Reference:
    """Reads an OpenAPI description."""

    def __init__(self, schema: _Schema) -> None:
        self.schema = schema

    def route(self, method: str, path: str, described: _Schema, roles: Sequence[str]) -> Documented:
        content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = self._resolved(content.get("schema", {}))
        answers = described["responses"]
        return Documented(
            method=method,
            path=path,
            about=described.get("description", described.get("summary", "")),
            roles=roles,
            parameters=[self._parameter(one) for one in described.get("parameters", [])],
            body=list(self._fields(body)),
            answers=[self._answer(status, answers[status]) for status in answers if status < "400"],
            curl=_curl(method, path, self._example(body) if body else None, bool(roles)),
        )

    def _resolved(self, schema: _Schema) -> _Schema:
        name = schema.get("$ref", "").rpartition("/")[2]
        return self.schema["components"]["schemas"][name] if name else schema

    def _parameter(self, described: _Schema) -> Field:
        schema = described.get("schema", {})
        name = f"{described['name']} ({described['in']})"
        about = (described.get("description") or schema.get("description", "")).replace("`", "")
        return Field(name, self._kind(schema), described.get("required", False), about)

    def _fields(self, schema: _Schema) -> Iterator[Field]:
        for name, described in schema.get("properties", {}).items():
            about = described.get("description") or self._resolved(described).get("description", "")
            about = about.replace("`", "")
            yield Field(name, self._kind(described), name in schema.get("required", ()), about)

    def _answer(self, status: str, described: _Schema) -> Answer:
        content = described.get("content", {}).get("application/json", {})
        phrase = HTTPStatus(int(status)).phrase
        return Answer(status, phrase, list(self._fields(self._resolved(content.get("schema", {})))))

    def _kind(self, schema: _Schema) -> str:
        """Return the type of a field in words."""
        if "anyOf" in schema:
            kinds = dict.fromkeys(self._kind(one) for one in schema["anyOf"] if one.get("type") != "null")
            return " or ".join(kinds)
        if "enum" in schema or "const" in schema:
            return "one of " + ", ".join(map(str, schema.get("enum", [schema.get("const")])))
        if schema.get("type") == "array":
            return f"list of {self._kind(schema.get('items', {}))}"
        if "$ref" in schema:
            return self._kind(self._resolved(schema)) if "enum" in self._resolved(schema) else "object"
        return schema.get("format", schema.get("type", "anything")).replace("date-time", "time (ISO 8601)")

    def _example(self, schema: _Schema) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return an example of a schema, with the required fields only."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            return self._example(schema["anyOf"][0])
        if schema.get("type") == "array":
            return [self._example(schema["items"])]
        if "examples" in schema:
            return schema["examples"][0]
        if schema.get("type") == "object":
            named = schema.get("required") or list(schema.get("properties", {}))
            return {name: self._example_of(name, schema["properties"][name]) for name in named}
        return schema.get("default", _EXAMPLES.get(schema.get("type", ""), "…"))

    def _example_of(self, name: str, schema: _Schema) -> Any:  # noqa: ANN401 - whatever JSON holds
        if name in ("user_ids", "item_ids"):
            return [name.removesuffix("_ids") + "-1"]
        return f"{name.removesuffix('_id')}-1" if name.endswith("_id") else self._example(schema)


def _curl(method: str, path: str, body: object, needs_token: bool) -> str:
    parts = ["curl" if method == "GET" else f"curl -X {method}"]
    if needs_token:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    if body is not None:
        parts += ['-H "Content-Type: application/json"', f"-d '{json.dumps(body, ensure_ascii=False)}'"]
    return " \\\n  ".join([*parts, f'"$SERVICE{path}"'])


router = APIRouter(include_in_schema=False)


@router.get("/docs")
def show_reference(request: HttpRequest, caller: Annotated[Caller | None, Depends(OPEN_PAGES)]) -> Response:
    """Show every route of the API."""
    facts = {"subjects": documented_routes(request.app), "problems": _problems(), "api_version": request.app.version}
    return page(request, "reference.html", facts)


def _problems() -> dict[int | str, str]:
    """Return the statuses of problems that any route may answer with, and their phrases."""
    return {status: described["description"] for status, described in RESPONSES.items()}
