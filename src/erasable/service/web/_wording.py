"""States, steps and events in words, for the pages."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from erasable.requests.request import Event, RequestState
from erasable.wording import counted, moment

STATES_IN_WORDS: Mapping[RequestState, str] = {
    "received": "just received",
    "suppressed": "waits for its batch; the person is not used for recommendations any more",
    "erasing": "being erased",
    "certifying": "erased; the files are being searched and the erasure certified",
    "erased": "erased, searched and certified",
    "rejected": "rejected",
    "withdrawn": "taken back",
    "on hold": "on hold; the person is not used for recommendations meanwhile",
    "failed": "failed",
}
STATES_SERVED_WITHOUT: Mapping[RequestState, str] = {
    **STATES_IN_WORDS,
    "suppressed": "waits for its batch; the person is served without the items asked for",
    "on hold": "on hold; the person is served without the items asked for meanwhile",
}
"""The same for a request about some items, while the person is served from a row without them."""
STEPS_IN_WORDS = {
    "forgetting": "Training again without the person",
    "scanning": "Searching the files for what was erased",
    "certifying": "Issuing certificates",
    "evaluating": "Measuring how well it recommends",
    "replaying": "Training again from what is left, to compare every byte",
    "learning": "Learning what came in",
    "saving": "Saving",
}
_SENTENCES = {
    "received": "Received: {scope}",
    "joined": "Asked for again; joined with this request: {scope}",
    "accepted": "Accepted: there is data to erase",
    "suppressed": "What was asked for is left out of recommendations",
    "erasing": "Erasing began, {batch}{again}",
    "certifying": "Data erased; who asked is forgotten here; searching what is left",
    "verifying": "Data erased; who asked is forgotten here; searching what is left",
    "erased": "Certified: {files} searched, nothing found",
    "rejected": "Rejected: {reason}",
    "withdrawn": "Taken back",
    "on hold": "Put on hold{because}",
    "failed": "Failed: {reason} ({retry})",
    "deadlines set": "Came in before deadlines were recorded; today's apply",
    "extended": "Extended by two months{because}",
    "resumed": "Resumed: the worker had ended before it was done",
    "retry asked": "Asked for another attempt",
    "revealed": "Looked at who asked",
    "named": "Named the person in a reason, which was refused",
    "token created": "Created the token {token} for the role {role}",
    "token revoked": "Revoked the token {token}",
    "token renamed": "Gave the token {token} another label",
    "verification asked": "Asked for a verification",
    "verification begun": "Verification began",
    "planned": "Planned {batch}{again}",
    "verification ended": "Verification ended: {reason}",
    "learned more": "Learned {interactions} more interactions, {users} new users{left_out}",
    "learning failed": "Learning what came in failed: {reason}",
    "upgraded": "Trained again on the updated machine: {adopted} checkpoints with equal bytes, {trained} with new ones",
    "server restarts": "A server restarted, because people were erased",
    "upgrade failed": "Training again on the updated machine failed: {reason}",
}


def event_in_words(event: Event) -> str:
    """Return an event as a sentence; an event that is unknown here keeps its own name."""
    sentence = _SENTENCES.get(event.name, event.name)
    given = {name: value for name, value in event.facts.items() if value is not None}
    return sentence.format_map(defaultdict(lambda: "not given", {**given, **_worded(event.facts)}))


def _worded(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "batch": f"in a batch of {counted(facts.get('requests', 1), 'request')}",
        "again": _again(facts["stages_rerun"], facts["stages_total"]) if facts.get("stages_total") else "",
        "files": counted(facts.get("files_searched", 0), "file"),
        "retry": _retry(facts.get("retry_at")),
        "because": f": {facts['reason']}" if facts.get("reason") else "",
        "left_out": "; left out what is on the do-not-learn list" if facts.get("left_out") else "",
    }


def _again(rerun: int, total: int) -> str:
    if total == 1:
        return "; the model to be rebuilt" if rerun else "; the model stays as it is"
    return f"; {rerun} of {counted(total, 'stage')} to run again"


def _retry(retry_at: str | None) -> str:
    return f"tried again {moment(datetime.fromisoformat(retry_at))}" if retry_at else "waits for someone to look at it"
