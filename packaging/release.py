"""`make release`: write what names the repository into dist/release. Nothing of this is in the sources.

GITHUB_REPOSITORY is OWNER/NAME, as the service sets it. If the service builds a tag, it has to be that of the version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist" / "release"
REPOSITORY = "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]"
"""OWNER/NAME, as they may stand in the name of a server in the MCP registry."""
PACKAGE = "quire-run"
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
DESCRIPTION = "Offers AI workflows that are written as documents as tools: checked, recorded, resumable."
"""For the MCP registry, which takes 100 characters."""
FORMATS = {
    "pipeline": ("Quire pipeline", ["**/pipelines/*.yaml", "**/pipelines/*.yml", "*.pipeline.yaml"]),
    "test": ("Quire document test", ["*.test.yaml"]),
    "settings": ("Quire settings", ["quire.toml"]),
    "lock": ("Quire lock", ["quire.lock"]),
}
"""The formats that have a schema: their names in the catalogue of SchemaStore, and their files."""


def main() -> int:
    address, version = repository_address(), read_version()
    if os.environ.get("GITHUB_REF_TYPE") == "tag":
        check_tag(os.environ.get("GITHUB_REF_NAME", ""), version)
    schemas = {name: read_schema(name) for name in FORMATS}
    for name, schema in schemas.items():
        write(f"schemas/quire-{name}.schema.json", schema)
    write("schemastore.json", {"schemas": [catalogue_entry(name, address, version) for name in schemas]})
    write("server.json", registry_entry(address, version))
    write("vscode/package.json", extension_manifest(address, version))
    (OUT / "labels").write_text("".join(f"{line}\n" for line in image_labels(address, version)), encoding="utf-8")
    print(*sorted(path.relative_to(ROOT).as_posix() for path in OUT.rglob("*") if path.is_file()), sep="\n")
    return 0


def check_tag(tag: str, version: str) -> None:
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, but the version is {version}: tag v{version}, or change __version__")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section {version}")


def repository_address() -> str:
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(REPOSITORY, repository):
        sys.exit(
            "GITHUB_REPOSITORY has to be OWNER/NAME; both begin and end with a letter or digit, as in the MCP registry"
        )
    return f"{os.environ.get('GITHUB_SERVER_URL') or 'https://github.com'}/{repository}"


def read_version() -> str:
    source = (ROOT / "src/quire/__init__.py").read_text(encoding="utf-8")
    return source.partition('__version__ = "')[2].partition('"')[0]


def registry_entry(address: str, version: str) -> dict[str, Any]:
    """Return the entry of `quire mcp` in the MCP registry. The README of the package names it too (hatch_build.py)."""
    owner_and_name = "/".join(address.split("/")[-2:])
    with_extra = {"type": "named", "name": "--with", "value": f"{PACKAGE}[mcp,llm]=={version}"}
    package = {
        "registryType": "pypi",
        "identifier": PACKAGE,
        "version": version,
        "runtimeHint": "uvx",
        "runtimeArguments": [with_extra],
        "packageArguments": [{"type": "positional", "value": "mcp"}],
        "transport": {"type": "stdio"},
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": f"io.github.{owner_and_name}",
        "description": DESCRIPTION,
        "repository": {"url": address, "source": "github"},
        "version": version,
        "packages": [package],
    }


def catalogue_entry(name: str, address: str, version: str) -> dict[str, Any]:
    title, files = FORMATS[name]
    url = f"{address}/releases/download/v{version}/quire-{name}.schema.json"
    return {"name": title, "description": f"{title}, run by Quire", "fileMatch": files, "url": url}


def read_schema(name: str) -> Any:
    """Return the JSON Schema that `quire grammar NAME --schema` prints."""
    command = [sys.executable, "-I", "-m", "quire", "grammar", name, "--schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return json.loads(printed.stdout)


def extension_manifest(address: str, version: str) -> dict[str, Any]:
    """Return the manifest of the extension for VS Code with what the marketplaces want to know about the repository."""
    manifest: dict[str, Any] = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))
    manifest["version"] = version
    manifest["repository"] = {"type": "git", "url": f"{address}.git", "directory": "editors/vscode"}
    manifest["bugs"] = {"url": f"{address}/issues"}
    manifest["homepage"] = f"{address}#readme"
    return manifest


def image_labels(address: str, version: str) -> list[str]:
    """Return the labels of the image, one in each line, without blanks."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()  # noqa: S603
    values = {"source": address, "version": version, "revision": commit, "licenses": "MIT", "title": "Quire"}
    return [f"org.opencontainers.image.{name}={value}" for name, value in values.items()]


def write(name: str, value: Any) -> None:
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
