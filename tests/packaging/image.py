"""`make test-image`: the image is built and used without a container engine, where Debian's buildah and mmdebstrap are.

The base is made by mmdebstrap (it is kept in .venv/image), and the build runs in a chroot. Needs root and Debian's
package archive; elsewhere the test is skipped and says why. `make image-wheels` has fetched the wheels.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tests.packaging.commands import expect, run
from tests.pythons.environment import ROOT

from quire import __version__

BASE, IMAGE = "localhost/quire-base", "localhost/quire-image-test"
SUITE = "trixie"
KEPT = ROOT / ".venv" / "image"
PLAYBOOK = "# Hello\n\n## STEP 1: Greet\n\nGreet the reader.\n"
REPLIES = [{"step": "1", "reply": "Hello."}]


def reason_to_skip() -> str:
    missing = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    return "" if os.geteuid() == 0 else "it needs root"


class Buildah:
    """buildah with a storage of its own, and no namespaces."""

    def __init__(self, folder: Path) -> None:
        self._command = ("buildah", "--storage-driver", "vfs", "--root", f"{folder}/root", "--runroot", f"{folder}/run")

    def __call__(self, *arguments: str) -> str:
        return run(*self._command, *arguments, environ={"BUILDAH_ISOLATION": "chroot"})

    def in_image(self, container: str, *command: str) -> str:
        return self("run", "--user", "10001", container, "--", *command)


def make_base(buildah: Buildah) -> None:
    archive = KEPT / f"{SUITE}.tar"
    if not archive.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        partial = archive.with_suffix(".partial.tar")
        run("mmdebstrap", "--quiet", "--variant=minbase", SUITE, str(partial))
        partial.rename(archive)
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, str(archive), "/")
    buildah("commit", "--quiet", container, BASE)
    buildah("rm", container)


def try_image(buildah: Buildah) -> None:
    container = buildah("from", IMAGE).strip()
    config = json.loads(buildah("inspect", container))["OCIv1"]["config"]
    expect(config["User"] == "10001" and config["Entrypoint"] == ["quire"], f"the image says {config}")
    said = buildah.in_image(container, "id", "-u").strip()
    expect(said == "10001", f"the user in the image is {said}")
    said = buildah.in_image(container, "quire", "--version").strip()
    expect(bool(re.fullmatch(rf"quire {re.escape(__version__)} \(\w{{8}}, [\d-]+\)", said)), f"--version says {said!r}")
    buildah.in_image(container, "quire", "new", "playbook", "first")
    buildah.in_image(container, "quire", "check", "--strict", "first.playbook.md")
    files = f"cat > hello.playbook.md <<'EOF'\n{PLAYBOOK}EOF\ncat > replies.json <<'EOF'\n{json.dumps(REPLIES)}\nEOF\n"
    buildah.in_image(container, "sh", "-c", files)
    said = buildah.in_image(container, "quire", "run", "-q", "hello.playbook.md", "--script", "replies.json")
    expect(said.strip() == "Hello.", f"the run gave {said!r}")
    listed = json.loads(buildah.in_image(container, "sh", "-c", "quire doctor --json; true"))
    findings = {finding["what"]: (finding["state"], finding["detail"]) for finding in listed}
    for extra in ("llm", "mcp", "web"):
        expect(findings[f"extra {extra}"][0] == "ok", f"doctor says {findings[f'extra {extra}']}")
    state, hint = findings["extra local"]
    expect(state == "missing" and "-full" in hint, f"the image says about local models: {hint}")
    buildah("run", "--user", "10001", container, "--", "quire", "worker", "--help")
    # Nothing that runs as this user may change Quire itself.
    said = buildah.in_image(container, "sh", "-c", "touch /opt/quire/x 2>/dev/null && echo writable || true").strip()
    expect(said == "", "the user of the image can write to /opt/quire")


def main() -> int:
    if reason := reason_to_skip():
        print(f"SKIPPED: the image was not tried: {reason}")
        return 0
    wheels = ROOT / "dist" / "image"
    expect(any(wheels.glob("*.whl")), "make image-wheels has to be run before")
    with tempfile.TemporaryDirectory(prefix="quire-image-", dir="/var/tmp") as folder:
        buildah = Buildah(Path(folder))
        make_base(buildah)
        buildah("build", "--quiet", "--build-arg", f"BASE={BASE}", "--file", "Containerfile", "--tag", IMAGE, ".")
        try_image(buildah)
    print(f"the image is built, and a run completes in it as user 10001 ({SUITE})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
