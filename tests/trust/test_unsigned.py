"""What the user has to allow a directive that nobody signed."""

from __future__ import annotations

import pytest

from quire.trust.capabilities import Grants, grant_for
from quire.trust.risk import NO_RULES, ProjectRisk, Rule, Tier, Ungranted, require_granted

BASH = "rye.execute.tool.rye.bash"
WEB = "rye.execute.tool.rye.web.*"
FILES = "rye.execute.tool.rye.file-system.*"


@pytest.mark.parametrize(
    ("asked", "allow", "missing"),
    [
        ([FILES, "rye.fetch.*", "rye.execute.tool.ask"], [], []),
        ([FILES, BASH, WEB], [], [BASH, WEB]),
        ([BASH, WEB], ["shell"], [WEB]),
        ([BASH, WEB], [WEB], [BASH]),
        ([BASH, WEB], ["rye.execute.*"], []),
        ([WEB], ["http__get"], [WEB]),
        (["rye.*"], ["rye.execute.*"], ["rye.*"]),
        (["rye.*"], ["*"], []),
        # An old name of the same tool.
        (["rye.execute.tool.shell"], ["rye.execute.tool.shell"], []),
    ],
)
def test_all_that_is_missing_is_said_at_once(asked: list[str], allow: list[str], missing: list[str]) -> None:
    granted = Grants.of(grant_for(name) for name in allow)
    if not missing:
        require_granted("demo/d", asked, granted, NO_RULES, {})
        return
    with pytest.raises(Ungranted) as caught:
        require_granted("demo/d", asked, granted, NO_RULES, {"elevated": "why"})
    assert list(caught.value.missing) == missing
    assert str(caught.value).endswith("allow it with " + " ".join(f"--allow {one}" for one in missing))
    assert (caught.value.item_id, caught.value.reasons, caught.value.exit_code) == ("demo/d", {"elevated": "why"}, 6)


def test_what_a_project_raises_is_asked_for_too() -> None:
    project = ProjectRisk((Rule("rye.fetch.knowledge.secret.*", Tier.ELEVATED),))
    with pytest.raises(Ungranted, match=r"rye\.fetch\.knowledge\.secret\.a is elevated: "):
        require_granted("demo/d", ["rye.fetch.knowledge.secret.a"], Grants(), project, {})
