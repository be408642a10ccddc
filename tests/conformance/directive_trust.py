"""Cases of the kit about permissions, risks and signatures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from quire.errors import Denied
from quire.trust.capabilities import Grants
from quire.trust.keys import SigningKey
from quire.trust.risk import NO_RULES, ProjectRisk, Rule, Tier, assess, read_risk
from quire.trust.signatures import Verification, sign_text, verify_text
from quire.trust.trusted_keys import TrustedKey, TrustedKeys

NOW = datetime(2026, 2, 10, 2, 0, tzinfo=UTC)
FIELDS = ("timestamp", "hash", "signature", "keyid")
KIT_NAMES = {
    Verification.MALFORMED: "unsigned",
    Verification.STACKED: "modified",
    Verification.REVOKED: "untrusted",
    Verification.MISPLACED: "bad_signature",
}
"""The kit knows five outcomes; ours are finer."""


def check_permission(given: dict[str, Any]) -> dict[str, Any]:
    grants = Grants.of(given["capabilities"])
    if "parent_capabilities" in given:
        parent = Grants.of(given["parent_capabilities"])
        grants = grants.narrow(parent) if grants.patterns else parent
    result: dict[str, Any] = {"effective_capabilities": sorted(grants.patterns)}
    wanted = given["request"]
    try:
        grants.require(wanted["primary"], wanted["item_type"], wanted["item_id"])
    except Denied as error:
        return {**result, "decision": "deny", "error": str(error)}
    return {**result, "decision": "allow"}


def check_risk(given: dict[str, Any]) -> dict[str, Any]:
    table = given.get("project_risk")
    if isinstance(table, str):
        project = read_risk(table, "capability_risk.yaml")
    elif table:
        project = ProjectRisk(tuple(Rule(one["pattern"], Tier(one["tier"])) for one in table))
    else:
        project = NO_RULES
    found = assess(given["capabilities"], given["acknowledged"], project)
    tiers = {capability: tier.value if tier else None for capability, tier in found.tiers.items()}
    return {"outcome": found.outcome, "tiers": tiers, "error": "\n".join(found.messages)}


def check_signature(given: dict[str, Any]) -> dict[str, Any]:
    key = SigningKey.generate("kit")
    trusted = TrustedKeys.of([TrustedKey(key.public)])
    item = PurePath(given["path"]).with_suffix("").as_posix()
    text = given["text"]
    if given.get("sign_first"):
        text = sign_text(text, "directive", item, key, NOW)
    for edit in given.get("mutate", []):
        text = sign_text(text, "directive", item, key, NOW) if edit["op"] == "resign" else _edited(text, edit)
    verdict = verify_text(text, "directive", item, trusted)
    lines = text.split("\n")
    return {
        "outcome": KIT_NAMES.get(verdict.outcome, verdict.outcome.value),
        "error": verdict.message,
        "line1": lines[0],
        "signature_lines": sum(line.startswith("<!-- rye:signed:") for line in lines),
    }


def _edited(text: str, edit: dict[str, Any]) -> str:
    first, newline, rest = text.partition("\n")
    match edit["op"]:
        case "replace":
            return text.replace(edit["old"], edit["new"])
        case "append":
            return text + str(edit["text"])
        case "prepend":
            return str(edit["text"]) + text
        case "set_line1":
            return f"{edit['text']}{newline}{rest}"
        case "sig_suffix":
            return first.replace(" -->", f"{edit['text']} -->") + newline + rest
        case "sig_field":
            opening, signed, fields = first.removesuffix(" -->").partition("rye:signed:")
            parts = fields.rsplit(":", 3)
            parts[FIELDS.index(edit["field"])] = str(edit["value"])
            return f"{opening}{signed}{':'.join(parts)} -->{newline}{rest}"
        case other:
            raise ValueError(f"no edit {other}")
